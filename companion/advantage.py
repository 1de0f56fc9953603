"""Advantages from rewards and values: generalized advantage estimation and TD(lambda) targets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from companion import validation

FloatArray = NDArray[Any]  # float32 of a network's values, or float64


class Advantages(NamedTuple):
    """What each step is worth beyond the value, and what the value should have been."""

    adv: FloatArray  # (n,)
    target: FloatArray  # (n,): TD(lambda) targets G


def td_errors(
    rewards: FloatArray,
    values: FloatArray,
    next_values: FloatArray,
    terminated: NDArray[np.bool_],
    gamma: float = 0.99,
) -> FloatArray:
    """Compute the temporal-difference error of each step.

    td_error_t = r_t + gamma (1 - terminated_t) v(next_t) - v(s_t)  (chapter, section 7)

    Args:
        rewards, values, next_values: (n,), of the same dtype. The next value is that of the
            observation that really followed: at a time limit or a cut it is not the next row's.
        terminated: (n,); True where nothing follows. A time limit does not terminate.
        gamma: discount, in [0, 1].

    Returns:
        (n,).

    Raises:
        ValueError: shapes differ, or gamma is outside [0, 1].

    Reference: Pardo et al. 2018 (time limits).

    >>> one, none = np.ones(2), np.zeros(2)
    >>> td_errors(one, none, one, np.array([False, True]), gamma=0.5)
    array([1.5, 1. ])
    """
    validation.between("gamma", gamma, 0.0, 1.0)
    _same_shape(rewards=rewards, values=values, next_values=next_values, terminated=terminated)
    return rewards + gamma * np.where(terminated, 0, next_values).astype(values.dtype) - values


def gae(
    td_error: FloatArray, last: NDArray[np.bool_], gamma: float = 0.99, lam: float = 0.95
) -> FloatArray:
    """Sum temporal-difference errors to the end of each stretch, discounted.

    A_t = td_error_t + gamma lam A_{t+1}, from 0 after the last step of a stretch
    (chapter, section 7)

    Args:
        td_error: (n,) errors in the order of time, one stretch after the other.
        last: (n,); True at the last step of a stretch, whatever ended it.
        gamma, lam: discount and GAE's lambda, in [0, 1]; 0 gives the errors, 1 the whole return.

    Returns:
        (n,), dtype of td_error.

    Raises:
        ValueError: shapes differ, the last step ends no stretch, or gamma or lam is outside [0, 1].

    Reference: Schulman et al. 2016, equation 16.

    >>> gae(np.ones(4), np.array([False, False, True, True]), gamma=1.0, lam=0.5)
    array([1.75, 1.5 , 1.  , 1.  ])
    """
    decay = float(validation.between("gamma", gamma, 0, 1) * validation.between("lam", lam, 0, 1))
    _same_shape(td_error=td_error, last=last)
    if not len(last) or not last[-1]:
        raise ValueError("the last step must end a stretch; last[-1] is not True")
    lengths = np.diff(np.flatnonzero(last), prepend=-1)
    # All stretches side by side: one backward pass over the longest, not over all steps.
    there = np.arange(lengths.max()) < lengths[:, None]
    errors = np.zeros(there.T.shape, td_error.dtype)
    errors.T[there] = td_error
    running = np.zeros_like(errors[0])
    for row in errors[::-1]:
        running = row + decay * running
        row[:] = running
    adv: FloatArray = errors.T[there]
    return adv


def lambda_targets(
    rewards: FloatArray,
    values: FloatArray,
    next_values: FloatArray,
    terminated: NDArray[np.bool_],
    last: NDArray[np.bool_],
    gamma: float = 0.99,
    lam: float = 0.95,
) -> Advantages:
    """Estimate advantages, and from them the targets of the value function.

    G_t = A_t + v(s_t)  (chapter, section 7)

    Args:
        rewards, values, next_values, terminated, gamma: as for `td_errors`.
        last, lam: as for `gae`.

    Returns:
        adv (n,) and target (n,): the TD(lambda) returns.

    Raises:
        ValueError: as `td_errors` and `gae` do.

    Reference: Sutton and Barto 2018, section 12.1.

    >>> ones, end = np.ones(2), np.array([False, True])
    >>> lambda_targets(ones, 0 * ones, 0 * ones, end, end, gamma=1.0, lam=1.0).target
    array([2., 1.])
    """
    adv = gae(td_errors(rewards, values, next_values, terminated, gamma), last, gamma, lam)
    return Advantages(adv, adv + values)


def standardized(adv: FloatArray) -> FloatArray:
    """Shift and scale advantages to mean 0 and standard deviation 1.

    (A - mean A) / (std A + 1e-8), with the population's std  (chapter, section 7)

    Args:
        adv: (n,).

    Returns:
        (n,), same dtype; zeros if all are equal.

    Raises:
        FloatingPointError: their squares overflow.

    >>> standardized(np.array([1.0, 2.0, 3.0])).round(3)
    array([-1.225,  0.   ,  1.225])
    """
    with np.errstate(over="raise"):
        scaled: FloatArray = (adv - adv.mean()) / (adv.std() + 1e-8)
    return scaled


def _same_shape(**arrays: NDArray[Any]) -> None:
    first, *others = arrays
    shape = arrays[first].shape
    for name in others:
        if len(shape) != 1 or arrays[name].shape != shape:
            raise ValueError(
                f"{first} and {name} must have one shape (n,); got {shape} and {arrays[name].shape}"
            )

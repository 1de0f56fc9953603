"""Tabular policies: rows of action probabilities, one row a state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from companion import validation

FloatArray = NDArray[np.floating[Any]]


def check_policy(
    pi: ArrayLike, shape: tuple[int, int] | None = None, name: str = "pi"
) -> FloatArray:
    """Return a policy as a float64 array after checking its shape and its rows.

    Args:
        pi: (..., S, A) action probabilities; leading axes are a batch of policies.
        shape: (S, A) that the last two axes must have; None accepts any.
        name: what the error calls the policy.

    Raises:
        ValueError: wrong shape, an entry that is NaN, infinite or negative, or a row that does
            not sum to 1 within 1e-8. Rows given in float32 may be off by its rounding (2e-6); they
            are divided by their sums.
    """
    array = validation.numbers(name, pi)
    if shape is not None:
        validation.last_axes(name, array, shape)
    elif array.ndim < 2:
        raise ValueError(f"{name} must have shape (..., states, actions); got {array.shape}")
    return validation.probabilities(name, pi)


def check_one_policy(pi: ArrayLike, shape: tuple[int, int], name: str = "pi") -> FloatArray:
    """Return a single policy as `check_policy` does; a batch is refused."""
    policy = check_policy(pi, shape, name)
    if policy.ndim > 2:
        raise ValueError(f"{name} must be one policy of shape {shape}; got {policy.shape}")
    return policy


def check_logits(logits: ArrayLike, shape: tuple[int, int], name: str = "start") -> FloatArray:
    """Return logits as a float64 array of shape (..., S, A), checked."""
    array = validation.finite_array(name, logits)
    validation.last_axes(name, array, shape)
    return array


def softmax(logits: ArrayLike) -> FloatArray:
    """Turn logits into probabilities along the last axis.

    pi(a|s) = exp(logits(s,a)) / sum_b exp(logits(s,b))  (chapter, section 1)

    Args:
        logits: (..., A) float64, any finite size.

    Returns:
        (..., A) probabilities.

    Raises:
        ValueError: an entry is NaN or infinite.

    >>> softmax([0.0, np.log(3.0)])
    array([0.25, 0.75])
    """
    array = validation.finite_array("logits", logits)
    with np.errstate(over="ignore"):  # a difference of -inf is a probability of 0
        weights = np.exp(array - array.max(axis=-1, keepdims=True))
    pi: FloatArray = weights / weights.sum(axis=-1, keepdims=True)
    return pi


def uniform(n_states: int, n_actions: int) -> FloatArray:
    """Return the policy that takes every action with the same probability, shape (S, A).

    Raises:
        ValueError: a size that is not a whole number of at least 1.

    >>> uniform(1, 4)
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    states, actions = _sizes(n_states, n_actions)
    return np.full((states, actions), 1 / actions)


def random_policy(
    n_states: int, n_actions: int, *, rng: np.random.Generator, concentration: float = 1.0
) -> FloatArray:
    """Draw each state's action probabilities from a symmetric Dirichlet distribution.

    Args:
        n_states, n_actions: the shape (S, A) of the result.
        rng: the source of the draws.
        concentration: below 1 rows are close to deterministic, above 1 close to uniform.

    Raises:
        ValueError: a size that is not a whole number of at least 1; concentration not finite and
            above 0; rng no generator.
    """
    states, actions = _sizes(n_states, n_actions)
    weight = validation.positive("concentration", concentration)
    return validation.generator(rng).dirichlet(np.full(actions, weight), size=states)


def greedy(q: ArrayLike) -> FloatArray:
    """Return the deterministic policy that takes the action of largest value in each state.

    Ties go to the lowest action number.

    Args:
        q: (..., S, A) action values.

    Returns:
        (..., S, A) with a single 1 in each row.

    Raises:
        ValueError: an entry is NaN or infinite.
    """
    values = validation.finite_array("q", q)
    if values.ndim == 0:
        raise ValueError(f"q must have shape (..., actions); got the number {values}")
    pi: FloatArray = np.eye(values.shape[-1])[values.argmax(axis=-1)]
    return pi


def mixture(pi: ArrayLike, other: ArrayLike, alpha: ArrayLike) -> FloatArray:
    """Mix two policies state by state, as conservative policy iteration does.

    pi_alpha(a|s) = (1 - alpha) pi(a|s) + alpha pi'(a|s)  (chapter, section 3)

    Args:
        pi, other: (S, A) policies.
        alpha: weight of `other` in [0, 1]; an array gives one policy per entry.

    Returns:
        alpha.shape + (S, A).

    Raises:
        ValueError: alpha outside [0, 1], or an argument that is not a policy.

    Reference: Kakade and Langford 2002, section 4.
    """
    old = check_policy(pi)
    new = check_policy(other, (old.shape[-2], old.shape[-1]), "other")
    weight = validation.between("alpha", alpha, 0, 1)[..., None, None]
    validation.broadcastable(alpha=weight.shape, pi=old.shape, other=new.shape)
    mixed: FloatArray = (1 - weight) * old + weight * new
    return mixed


def score(pi: ArrayLike) -> FloatArray:
    """Return the gradient of log pi(a|s) with respect to that state's logits.

    d log pi(a|s) / d logits(s,b) = 1[a = b] - pi(b|s)  (chapter, section 1)

    Args:
        pi: (..., S, A) softmax policy.

    Returns:
        (..., S, A, A): the last axis is the logit b, the one before it the action a.
    """
    probabilities = check_policy(pi)
    return np.eye(probabilities.shape[-1]) - probabilities[..., None, :]


def kl(old: ArrayLike, new: ArrayLike) -> FloatArray:
    """Measure how far `new` is from `old` in each state, in nats.

    KL(old || new)(s) = sum_a old(a|s) log(old(a|s) / new(a|s))  (chapter, section 3)

    Infinite where `new` rules out an action that `old` takes.

    Args:
        old, new: (..., S, A) policies; leading axes broadcast.

    Returns:
        (..., S), zero exactly where the rows are equal.

    Raises:
        ValueError: shapes that do not match, or an argument that is not a policy.

    >>> kl([[0.5, 0.5]], [[0.5, 0.5]])
    array([0.])
    """
    p = check_policy(old, name="old")
    q = check_policy(new, (p.shape[-2], p.shape[-1]), "new")
    validation.broadcastable(old=p.shape, new=q.shape)
    # Adding q - p to each term, which sums to 0, makes all of them at least 0. Near q = p the form
    # in x = (q - p)/p keeps the digits of a KL of 1e-12; far from it, log q keeps a tiny q finite.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        x = (q - p) / p
        near = p * (x - np.log1p(x))
        far = np.where(p > 0, q - p + p * (np.log(p) - np.log(q)), q)
    terms = np.where(np.abs(x) < 0.5, near, far)
    total: FloatArray = terms.sum(axis=-1)
    return total


def logit_bounds(p: ArrayLike, clip_range: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Find how far the logit difference may move while the ratio of one action stays in its band.

    low = log((1 - eps)(1 - p) / (1 - (1 - eps) p)), high with 1 + eps  (chapter, section 1)

    Args:
        p: probability of that action before the step, in (0, 1); any shape.
        clip_range: eps of the band |r - 1| <= eps, in (0, 1); broadcasts against p.

    Returns:
        The lowest change (negative) and the highest (infinite where (1 + eps) p >= 1) of the logit
        of the action minus that of the other one, of two.

    Raises:
        ValueError: p or clip_range outside (0, 1).

    >>> low, high = logit_bounds(0.5, 0.2)
    >>> f"{low:.4f} {high:.4f}"
    '-0.4055 0.4055'
    """
    probability = validation.between("p", p, 0, 1, "()")
    eps = validation.between("clip_range", clip_range, 0, 1, "()")
    validation.broadcastable(p=probability.shape, clip_range=eps.shape)
    low, high = (1 - eps) * probability, (1 + eps) * probability
    before = np.log(probability / (1 - probability))
    with np.errstate(divide="ignore", invalid="ignore"):
        highest = np.where(high < 1, np.log(high / (1 - high)) - before, np.inf)
    return np.log(low / (1 - low)) - before, highest


def _sizes(n_states: int, n_actions: int) -> tuple[int, int]:
    return validation.whole("n_states", n_states, 1), validation.whole("n_actions", n_actions, 1)

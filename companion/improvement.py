"""How much better a new policy is, exactly, and what the surrogate says of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from companion.mdp import TabularMDP, evaluate, expected_return, visitation
from companion.policy import FloatArray, check_one_policy, check_policy


class PerformanceDifference(NamedTuple):
    """Both sides of the lemma: J(new) - J(old), and the advantage of old under new's visitation."""

    gain: FloatArray
    advantage_sum: FloatArray

    @property
    def residual(self) -> FloatArray:
        """The absolute difference of the two sides; rounding error, if the lemma holds."""
        return np.abs(self.gain - self.advantage_sum)


def performance_difference(
    mdp: TabularMDP, old: ArrayLike, new: ArrayLike
) -> PerformanceDifference:
    """Compute the two sides of the performance-difference lemma independently.

    J(new) - J(old) = sum_s rho_new(s) sum_a new(a|s) A_old(s,a)  (exercise 20.1)

    The left side needs two value functions; the right side the visitation of new and the
    advantages of old.

    Args:
        mdp: the MDP.
        old, new: (..., S, A) policies; leading axes broadcast.

    Returns:
        PerformanceDifference with the leading axes.

    Raises:
        ValueError: a policy has the wrong shape or is not a policy.

    Reference: Kakade and Langford 2002, lemma 6.1.
    """
    before, after = check_policy(old, mdp.shape, "old"), check_policy(new, mdp.shape, "new")
    gain = expected_return(mdp, after) - expected_return(mdp, before)
    adv = evaluate(mdp, before).adv
    return PerformanceDifference(gain, advantage_sum(visitation(mdp, after), after, adv))


def surrogate_gain(mdp: TabularMDP, old: ArrayLike, new: ArrayLike) -> FloatArray:
    """Compute what the surrogate promises: the lemma's right side under old's own visitation.

    L_old(new) - J(old) = sum_s rho_old(s) sum_a new(a|s) A_old(s,a)  (chapter, section 2)

    Args and Raises as for `performance_difference`.

    Returns:
        Array with the leading axes; 0 up to rounding for new = old.

    Reference: Schulman et al. 2015, equation 3.
    """
    before, after = check_policy(old, mdp.shape, "old"), check_policy(new, mdp.shape, "new")
    _, _, adv, rho = evaluate(mdp, before)
    return advantage_sum(rho, after, adv)


def surrogate(mdp: TabularMDP, old: ArrayLike, new: ArrayLike) -> FloatArray:
    """Compute the surrogate L_old(new) = J(old) + `surrogate_gain` (chapter, section 2)."""
    gain = surrogate_gain(mdp, old, new)
    return expected_return(mdp, old) + gain


class SampleMean(NamedTuple):
    """A mean over samples and its standard error, in the unit of the samples."""

    mean: float
    standard_error: float


def sampled_surrogate_gain(
    mdp: TabularMDP,
    old: ArrayLike,
    new: ArrayLike,
    states: ArrayLike,
    actions: ArrayLike,
) -> SampleMean:
    """Estimate the surrogate gain from state-action pairs that the old policy visited.

    1/(1 - gamma) mean_i [ new(a_i|s_i) / old(a_i|s_i) A_old(s_i,a_i) ]  (chapter, section 2)

    The advantages are exact here, so that what remains is the sampling error alone.

    Args:
        mdp: the MDP.
        old, new: (S, A) policies.
        states, actions: (n,) integers drawn from d_old x old, as by `sampling.visits`.

    Returns:
        SampleMean of n terms.

    Raises:
        ValueError: fewer than 2 samples, states and actions of different length, a pair to which
            old gives probability 0, or a batch of policies.
    """
    s, a = np.asarray(states), np.asarray(actions)
    if s.ndim != 1 or s.shape != a.shape or s.size < 2:
        raise ValueError(
            f"states and actions must be 1-d, of one length of at least 2; got {s.shape} and"
            f" {a.shape}"
        )
    for name, index, size in (("states", s, mdp.shape[0]), ("actions", a, mdp.shape[1])):
        if index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= size:
            raise ValueError(f"{name} must be whole numbers from 0 to {size - 1}")
    before, after = check_one_policy(old, mdp.shape, "old"), check_one_policy(new, mdp.shape, "new")
    if (before[s, a] == 0).any():
        i = int(np.flatnonzero(before[s, a] == 0)[0])
        raise ValueError(
            f"old gives probability 0 to sample {i} (state {s[i]}, action {a[i]}); a ratio needs"
            " samples that old can have drawn"
        )
    terms = after[s, a] / before[s, a] * evaluate(mdp, before).adv[s, a] / (1 - mdp.gamma)
    return SampleMean(float(terms.mean()), float(terms.std(ddof=1) / np.sqrt(s.size)))


def advantage_sum(rho: FloatArray, pi: FloatArray, adv: FloatArray) -> FloatArray:
    """Return sum_s rho(s) sum_a pi(a|s) adv(s,a) over the last two axes."""
    total: FloatArray = (rho * (pi * adv).sum(axis=-1)).sum(axis=-1)
    return total

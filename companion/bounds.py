"""Lower bounds on the gain of a new policy, and the steps that they certify."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, optimize

from companion import validation
from companion.improvement import advantage_sum
from companion.mdp import TabularMDP, bellman_matrix, evaluate, visitation
from companion.policy import FloatArray, check_one_policy, check_policy, kl, mixture


class CpiTerms(NamedTuple):
    """G, the surrogate gain of the target, and C, the weight of the penalty on alpha^2."""

    gain: float
    penalty: float


def cpi_terms(mdp: TabularMDP, pi: ArrayLike, target: ArrayLike) -> CpiTerms:
    """Compute the two numbers that the bound of conservative policy iteration is made of.

    G = sum_s rho_pi(s) sum_a target(a|s) A_pi(s,a)
    C = 2 gamma e / (1 - gamma)^2,  e = max_s |sum_a target(a|s) A_pi(s,a)|  (chapter, section 3)

    Args:
        mdp: the MDP.
        pi: (S, A) policy that is improved.
        target: (S, A) policy that is mixed in.

    Returns:
        CpiTerms.

    Raises:
        ValueError: a policy has the wrong shape or is not a policy.

    Reference: Kakade and Langford 2002, theorem 4.1, with its factor 1/(1 - gamma (1 - alpha))
        replaced by its largest value 1/(1 - gamma); Schulman et al. 2015, equation 6.
    """
    old, new = check_one_policy(pi, mdp.shape, "pi"), check_one_policy(target, mdp.shape, "target")
    _, _, adv, rho = evaluate(mdp, old)
    # sum_a pi A is 0: leaving pi out makes both terms exactly 0 for target = pi.
    per_state = ((new - old) * adv).sum(axis=-1)
    penalty = 2 * mdp.gamma * np.abs(per_state).max() / (1 - mdp.gamma) ** 2
    return CpiTerms(float(rho @ per_state), float(penalty))


def cpi_bound(mdp: TabularMDP, pi: ArrayLike, target: ArrayLike, alpha: ArrayLike) -> FloatArray:
    """Bound from below the gain of mixing a target policy in.

    J(pi_alpha) - J(pi) >= alpha G - alpha^2 C  (chapter, section 3; G and C as in `cpi_terms`)

    Args:
        mdp, pi, target: as for `cpi_terms`.
        alpha: weight of the target in [0, 1], any shape.

    Returns:
        Lower bounds of the shape of alpha.

    Raises:
        ValueError: alpha outside [0, 1], an argument that is not a policy.
    """
    weight = validation.between("alpha", alpha, 0, 1)
    gain, penalty = cpi_terms(mdp, pi, target)
    bound: FloatArray = weight * gain - weight**2 * penalty
    return bound


def cpi_best_alpha(mdp: TabularMDP, pi: ArrayLike, target: ArrayLike) -> float:
    """Find the alpha in [0, 1] that maximizes `cpi_bound`.

    alpha* = min(1, G / (2 C)), and 0 where G <= 0  (chapter, section 3)

    Args, Raises and Reference as for `cpi_terms`.
    """
    gain, penalty = cpi_terms(mdp, pi, target)
    if gain <= 0:
        return 0.0
    return min(1.0, gain / (2 * penalty)) if penalty > 0 else 1.0


def kl_bound(mdp: TabularMDP, old: ArrayLike, new: ArrayLike) -> FloatArray:
    """Bound from below the gain of any new policy by its largest KL over states.

    J(new) - J(old) >= sum_s rho_old sum_a new A_old - 4 e gamma / (1 - gamma)^2 max_s KL(old||new)
    with e = max_{s,a} |A_old(s,a)|  (chapter, section 3)

    Args:
        mdp: the MDP.
        old: (S, A) policy.
        new: (..., S, A) policies.

    Returns:
        Lower bounds with the leading axes of new; -inf where new rules out an action of old, unless
        gamma is 0: then nothing is subtracted.

    Raises:
        ValueError: a policy has the wrong shape or is not a policy.

    Reference: Schulman et al. 2015, theorem 1.
    """
    before, after = check_one_policy(old, mdp.shape, "old"), check_policy(new, mdp.shape, "new")
    _, _, adv, rho = evaluate(mdp, before)
    return advantage_sum(rho, after, adv) - _kl_penalty(mdp, adv, kl(before, after))


class LargestSteps(NamedTuple):
    """Largest mixture weights alpha: certified by each bound, and truly without loss."""

    cpi: float
    kl: float
    safe: float


def largest_steps(mdp: TabularMDP, pi: ArrayLike, target: ArrayLike) -> LargestSteps:
    """Compare the step that each bound certifies with the step that truly loses nothing.

    Each is the largest alpha such that no smaller one makes the bound (or the true gain) negative
    along pi_alpha = (1 - alpha) pi + alpha target  (chapter, section 3)

    The true gain may fall below 0 and rise again. All its zeros are computed, so that only a loss
    of the size of rounding errors can be missed. The KL's step is exact to 7 digits above 1e-12.

    Args:
        mdp: the MDP.
        pi: (S, A) policy that is improved.
        target: (S, A) policy that is mixed in.

    Returns:
        LargestSteps, each in [0, 1].

    Raises:
        ValueError: a policy has the wrong shape or is not a policy.
    """

    def certified_by_kl(alpha: FloatArray) -> FloatArray:
        return alpha * gain - _kl_penalty(mdp, adv, kl(old, mixture(old, new, alpha)))

    old, new = check_one_policy(pi, mdp.shape), check_one_policy(target, mdp.shape, "target")
    gain, penalty = cpi_terms(mdp, old, new)
    if np.array_equal(new, old):
        return LargestSteps(1.0, 1.0, 1.0)
    adv = evaluate(mdp, old).adv
    per_state = ((new - old) * adv).sum(axis=-1)
    cpi = min(1.0, max(0.0, gain / penalty)) if penalty > 0 else float(gain >= 0)
    return LargestSteps(cpi, _end_of_gain(certified_by_kl), _safe_step(mdp, old, new, per_state))


def upper_bounds(mdp: TabularMDP, pi: ArrayLike, target: ArrayLike, alpha: float) -> FloatArray:
    """Compute the error of the surrogate and the upper bounds on it that the proofs pass.

    |L - J| <= alpha e |rho_alpha - rho|_1 <= 2 alpha^2 gamma e / ((1-gamma)(1-gamma(1-alpha)))
            <= 2 alpha^2 gamma e / (1-gamma)^2, and the KL bound's penalty  (chapter, section 3)

    Args:
        mdp: the MDP.
        pi, target: as for `cpi_terms`.
        alpha: weight of the target, in [0, 1].

    Returns:
        (5,) float64 in this order; the last is inf where the mixture rules out an action of pi.

    Raises:
        ValueError: alpha outside [0, 1], or an argument that is not a policy.
    """
    weight = validation.number_between("alpha", alpha, 0, 1)
    old, new = check_one_policy(pi, mdp.shape), check_one_policy(target, mdp.shape, "target")
    cpi = weight**2 * cpi_terms(mdp, old, new).penalty
    mixed = mixture(old, new, weight)
    _, _, adv, rho = evaluate(mdp, old)
    shift = visitation(mdp, mixed) - rho
    per_state = weight * ((new - old) * adv).sum(axis=-1)
    crude = np.abs(per_state).max() * np.abs(shift).sum()
    tight = cpi * (1 - mdp.gamma) / (1 - mdp.gamma * (1 - weight))
    by_kl = float(_kl_penalty(mdp, adv, kl(old, mixed)))
    return np.array([abs(shift @ per_state), crude, tight, cpi, by_kl])


def _kl_penalty(mdp: TabularMDP, adv: FloatArray, per_state_kl: FloatArray) -> FloatArray:
    weight = 4 * np.abs(adv).max() * mdp.gamma / (1 - mdp.gamma) ** 2
    largest: FloatArray = per_state_kl.max(axis=-1)
    # An infinite KL costs nothing where the next state does not matter.
    return weight * largest if weight > 0 else np.zeros_like(largest)


def _safe_step(mdp: TabularMDP, old: FloatArray, new: FloatArray, per_state: FloatArray) -> float:
    """Return the largest alpha up to which the mixture's return is not below that of old.

    J(pi_alpha) - J(pi) = alpha f(alpha),  f(alpha) = mu^T (I - gamma P_alpha)^-1 x

    with x(s) = sum_a target(a|s) A_pi(s,a). P_alpha is linear in alpha, so f is 0 where the matrix
    bordered by x and mu is singular: at generalized eigenvalues.
    """

    def f(alpha: float) -> float:
        return float(visitation(mdp, mixture(old, new, alpha)) @ per_state)

    start, end = bellman_matrix(mdp, old), bellman_matrix(mdp, new)
    bordered = np.block([[start, per_state[:, None]], [mdp.mu, 0.0]])
    zeros = linalg.eigvals(bordered, np.pad(start - end, (0, 1))).real
    cuts = np.unique([0.0, *zeros[(zeros > 0) & (zeros < 1)], 1.0])
    # Between two zeros f keeps its sign.
    points = np.sort([*cuts, *(cuts[1:] + cuts[:-1]) / 2])
    if f(0.0) < 0:
        return 0.0
    for low, high in pairwise(points):
        if f(high) < 0:
            return float(optimize.brentq(f, low, high, xtol=1e-18))
    return 1.0


def _end_of_gain(gain: Callable[[FloatArray], FloatArray]) -> float:
    """Return the largest alpha up to which a concave gain, 0 at 0, stays at least 0."""
    low, high = 0.0, 1.0
    # Certified steps lie many orders of magnitude below 1, so the scan is in powers.
    grid = np.concatenate([np.geomspace(1e-12, 1e-2, 400), np.linspace(1e-2, 1, 400)[1:]])
    for _ in range(4):
        negative = np.flatnonzero(gain(grid) < 0)
        if negative.size == 0:
            return high
        first = int(negative[0])
        low, high = (float(grid[first - 1]) if first else low), float(grid[first])
        grid = np.linspace(low, high, 100)
    return low

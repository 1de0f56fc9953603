"""MPO's E-step: the best reweighting of a policy within a KL radius, and its temperature."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import logsumexp

from companion import validation
from companion.mirror import mirror_step
from companion.policy import FloatArray, check_policy, kl


class EStep(NamedTuple):
    """The reweighted policy (S, A) and the temperature, in the unit of q, that was found for it."""

    policy: FloatArray
    temperature: float


def dual(
    temperature: float, pi_old: ArrayLike, q: ArrayLike, weights: ArrayLike, delta: float
) -> float:
    """Compute the dual of the E-step, convex in the temperature.

    g(T) = T delta + T sum_s w(s) log sum_a pi_old(a|s) exp(q(s,a) / T)  (chapter, section 9)

    Its minimum is the largest sum_s w(s) sum_a p(a|s) q(s,a) with mean KL(p || pi_old) at most
    delta.

    Args:
        temperature: T above 0, in the unit of q.
        pi_old, q, weights, delta: as for `e_step`.

    Raises:
        ValueError: as for `e_step`; temperature not finite and above 0.

    Reference: Abdolmaleki et al. 2018, section 3.2.
    """
    T = validation.positive("temperature", temperature)
    radius = validation.positive("delta", delta)
    policy, values, w = _check(pi_old, q, weights)
    log_z = logsumexp(values / T, b=policy, axis=1)
    return float(T * (radius + w @ log_z))


def e_step(pi_old: ArrayLike, q: ArrayLike, weights: ArrayLike, delta: float) -> EStep:
    """Improve a policy as far as a mean KL allows, without regard to what a network can represent.

    p(a|s) = pi_old(a|s) exp(q(s,a) / T) / Z(s), a mirror step with eta = 1/T  (chapter, section 9)

    T is where the derivative of `dual`, delta - sum_s w(s) KL(p || pi_old)(s), is zero.

    Args:
        pi_old: (S, A) policy.
        q: (S, A) action values.
        weights: (S,) share of each state among the data.
        delta: largest mean KL(p || pi_old), in nats.

    Returns:
        EStep; it meets the constraint with equality.

    Raises:
        ValueError: delta not finite and above 0, or so large that even the greedy policy lies
            within; q equal for all actions that pi_old takes, in all states of weight above 0; q
            or weights of the wrong shape; pi_old not a policy.

    Reference: Abdolmaleki et al. 2018, section 3.2; Song et al. 2020, section 4.
    """
    radius = validation.positive("delta", delta)
    policy, values, w = _check(pi_old, q, weights)

    # Only what pi_old takes, in states that count, can be preferred. Without a row's largest value
    # the digits are left to the differences.
    best = np.where(policy > 0, values, -np.inf).max(axis=1, keepdims=True)
    shortfall = np.maximum(best - values, 0.0)
    gaps = shortfall[(policy > 0) & (w > 0)[:, None] & (shortfall > 0)]
    if gaps.size == 0:
        raise ValueError(
            "q must tell the actions of some state apart, among those that pi_old takes where"
            " weights are above 0; all these values are equal"
        )
    spread = float(gaps.max())

    def improved(log_temperature: float) -> FloatArray:
        return mirror_step(policy, -shortfall / spread, float(np.exp(-log_temperature)))

    def excess(log_temperature: float) -> float:
        return float(w @ kl(improved(log_temperature), policy)) - radius

    # KL(p || pi_old) is at most spread^2 / (8 T^2): Hoeffding's bound on the variance under p.
    high = -0.5 * float(np.log(8 * radius))
    # Here the weight of every action that is not the best has underflowed to 0.
    low = float(np.log(gaps.min() / spread / 2000))
    if excess(low) <= 0:
        raise ValueError(
            f"delta must be below {excess(low) + radius:.6g}, the mean KL of the greedy policy;"
            f" got {delta!r}"
        )
    log_temperature = brentq(excess, low, high + 1e-9, xtol=1e-14)
    return EStep(improved(log_temperature), spread * float(np.exp(log_temperature)))


def _check(
    pi_old: ArrayLike, q: ArrayLike, weights: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    policy = check_policy(pi_old, name="pi_old")
    values = validation.finite_array("q", q)
    w = validation.probabilities("weights", weights)
    if policy.ndim != 2 or values.shape != policy.shape or w.shape != policy.shape[:1]:
        raise ValueError(
            "pi_old, q and weights must have shapes (S, A), (S, A) and (S,); got"
            f" {policy.shape}, {values.shape} and {w.shape}"
        )
    return policy, values, w

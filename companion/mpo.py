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
            within; q equal for all actions; q or weights of the wrong shape; pi_old not a policy.

    Reference: Abdolmaleki et al. 2018, section 3.2; Song et al. 2020, section 4.
    """
    radius = validation.positive("delta", delta)
    policy, values, w = _check(pi_old, q, weights)

    def excess(log_temperature: float) -> float:
        improved = mirror_step(policy, values, float(np.exp(-log_temperature)))
        return float(w @ kl(improved, policy)) - radius

    # KL(p || pi_old) is at most spread^2 / (8 T^2): Hoeffding's bound on the variance under p.
    spread = float(np.ptp(values, axis=1).max())
    if spread == 0:
        raise ValueError("q must tell the actions of some state apart; all values are equal")
    high = float(np.log(spread / np.sqrt(8 * radius)))
    low = float(np.log(spread * 1e-9))
    if excess(low) <= 0:
        raise ValueError(
            f"delta must be below {excess(low) + radius:.6g}, the mean KL of the greedy policy;"
            f" got {delta!r}"
        )
    log_temperature = brentq(excess, low, high + 1e-9, xtol=1e-14)
    temperature = float(np.exp(log_temperature))
    return EStep(mirror_step(policy, values, 1 / temperature), temperature)


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

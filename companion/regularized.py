"""Entropy-regularized MDPs: soft values, the soft optimum, and the natural gradient on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from companion import validation
from companion.mdp import TabularMDP, backup, bellman_matrix
from companion.policy import FloatArray


class SoftValues(NamedTuple):
    """What a policy is worth with its entropy bonus: v (..., S) and q (..., S, A)."""

    v: FloatArray
    q: FloatArray


def soft_values(mdp: TabularMDP, logp: ArrayLike, tau: float) -> SoftValues:
    """Evaluate a policy that earns tau times its entropy in every state, by one linear solve.

    v = sum_a pi (q - tau log pi),  q = r + gamma P v  (chapter, section 9)

    Args:
        mdp: the MDP.
        logp: (..., S, A) logarithms of the action probabilities.
        tau: temperature, the price of a nat of entropy in reward units.

    Returns:
        SoftValues with the leading axes of logp.

    Raises:
        ValueError: tau not finite and above 0, logp not finite or not log-probabilities.

    Reference: Geist et al. 2019, section 2; Cen et al. 2022, section 2.
    """
    log_pi = _check_logp(mdp, logp)
    price = validation.positive("tau", tau)
    pi = np.exp(log_pi)
    reward = np.vecdot(pi, mdp.r - price * log_pi)
    v: FloatArray = np.linalg.solve(bellman_matrix(mdp, pi), reward[..., None])[..., 0]
    return SoftValues(v, backup(mdp, v))


class SoftOptimum(NamedTuple):
    """The best soft values v (S,) and q (S, A), and the policy's log-probabilities (S, A)."""

    v: FloatArray
    q: FloatArray
    logp: FloatArray


def soft_optimum(mdp: TabularMDP, tau: float) -> SoftOptimum:
    """Find the optimum of the regularized problem by soft value iteration.

    v(s) = tau log sum_a exp(q(s,a) / tau),  pi = exp((q - v) / tau)  (chapter, section 9)

    Args:
        mdp: the MDP.
        tau: temperature, in reward units.

    Returns:
        SoftOptimum.

    Raises:
        ValueError: tau not finite and above 0.

    Reference: Neu et al. 2017, section 3.
    """
    price = validation.positive("tau", tau)
    v: FloatArray = np.zeros(mdp.shape[0])
    while True:
        q = backup(mdp, v)
        logp = _log_softmax(q / price)
        updated = (q - price * logp).max(axis=1)  # the same for every action, up to rounding
        # A change of a few units in the last place is rounding.
        if np.abs(updated - v).max() <= 1e-14 * np.abs(updated).max():
            return SoftOptimum(updated, q, logp)
        v = updated


def regularized_step(logp: FloatArray, q: FloatArray, tau: float, eta: float) -> FloatArray:
    """Take one step of the natural gradient on the regularized problem.

    pi_{k+1} = pi_k^(1 - eta tau) exp(eta q_k) / Z  (chapter, section 9)

    With eta = 1/tau the old policy drops out: soft policy iteration.

    Args:
        logp: (..., S, A) log-probabilities.
        q: (..., S, A) their soft action values.
        tau: temperature, in reward units.
        eta: mirror step in (0, 1/tau]; the natural gradient's own step is eta (1 - gamma).

    Returns:
        (..., S, A) log-probabilities.

    Raises:
        ValueError: tau not finite and above 0, eta outside (0, 1/tau].

    Reference: Cen et al. 2022, section 2.
    """
    price, step = validation.positive("tau", tau), validation.positive("eta", eta)
    keep = 1 - step * price
    if keep < -1e-12:
        raise ValueError(f"eta must be at most 1/tau = {1 / price:.6g}; got {eta!r}")
    return _log_softmax(max(keep, 0.0) * logp + step * q)


class SoftRun(NamedTuple):
    """Values v (iterations + 1, S) and log-probabilities (iterations + 1, S, A) of a run."""

    v: FloatArray
    logp: FloatArray


def regularized_run(
    mdp: TabularMDP, start: ArrayLike, tau: float, eta: float, iterations: int
) -> SoftRun:
    """Repeat `regularized_step` with exact soft values.

    Args:
        mdp: the MDP.
        start: (S, A) logits.
        tau, eta: as for `regularized_step`.
        iterations: number of steps.

    Returns:
        SoftRun.

    Raises:
        ValueError: start not finite or of the wrong shape, tau not finite and above 0, eta outside
            (0, 1/tau], iterations below 1.
    """
    logits = validation.finite_array("start", start)
    if logits.shape != mdp.shape:
        raise ValueError(f"start must have shape {mdp.shape}; got {logits.shape}")
    count = validation.whole("iterations", iterations, 1)
    logp = [_log_softmax(logits)]
    values = [soft_values(mdp, logp[0], tau)]
    for _ in range(count):
        logp.append(regularized_step(logp[-1], values[-1].q, tau, eta))
        values.append(soft_values(mdp, logp[-1], tau))
    return SoftRun(np.stack([v for v, _ in values]), np.stack(logp))


def _log_softmax(logits: FloatArray) -> FloatArray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    logp: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return logp


def _check_logp(mdp: TabularMDP, logp: ArrayLike) -> FloatArray:
    array = validation.finite_array("logp", logp)
    if array.shape[-2:] != mdp.shape:
        wanted = f"(..., {mdp.shape[0]}, {mdp.shape[1]})"
        raise ValueError(f"logp must have shape {wanted}; got {array.shape}")
    validation.probabilities("exp(logp)", np.exp(np.minimum(array, 1.0)))
    return array

"""Entropy-regularized MDPs: soft values, the soft optimum, and the natural gradient on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from companion import validation
from companion.mdp import TabularMDP, backup, bellman_matrix
from companion.policy import FloatArray, check_logits


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
    return _evaluate(mdp, _check_logp(mdp, logp), validation.positive("tau", tau))


class SoftOptimum(NamedTuple):
    """The best soft values v (S,) and q (S, A), and the policy's log-probabilities (S, A)."""

    v: FloatArray
    q: FloatArray
    logp: FloatArray


def soft_optimum(mdp: TabularMDP, tau: float) -> SoftOptimum:
    """Find the optimum of the regularized problem by soft policy iteration.

    v(s) = tau log sum_a exp(q(s,a) / tau),  pi = exp((q - v) / tau)  (chapter, section 9)

    Args:
        mdp: the MDP.
        tau: temperature, in reward units.

    Returns:
        SoftOptimum.

    Raises:
        ValueError: tau not finite and above 0, or too small to divide the action values by.

    Reference: Neu et al. 2017, section 3.
    """
    price = validation.positive("tau", tau)
    logp: FloatArray = np.full(mdp.shape, -np.log(mdp.shape[1]))
    best = -np.inf
    while True:
        v, q = _evaluate(mdp, logp, price)
        with np.errstate(over="ignore"):
            preferences = q / price
        if not np.isfinite(preferences).all():
            raise ValueError(f"tau must not be this small beside the rewards; got {tau!r}")
        logp = _normalized(preferences)
        # Every exact step raises the values; one that does not is rounding.
        if v.sum() <= best:
            return SoftOptimum(v, q, logp)
        best = v.sum()


def regularized_step(logp: ArrayLike, q: ArrayLike, tau: float, eta: float) -> FloatArray:
    """Take one step of the natural gradient on the regularized problem.

    pi_{k+1} = pi_k^(1 - eta tau) exp(eta q_k) / Z  (chapter, section 9)

    With eta = 1/tau the old policy drops out: soft policy iteration.

    Args:
        logp: (..., S, A) log-probabilities, finite.
        q: their soft action values, of the same shape.
        tau: temperature, in reward units.
        eta: mirror step in (0, 1/tau]; the natural gradient's own step is eta (1 - gamma).

    Returns:
        (..., S, A) log-probabilities.

    Raises:
        ValueError: tau not finite and above 0, eta outside (0, 1/tau], logp or q not finite or of
            different shapes.

    Reference: Cen et al. 2022, section 2.
    """
    log_pi, values = validation.finite_array("logp", logp), validation.finite_array("q", q)
    if values.shape != log_pi.shape:
        raise ValueError(f"q must have logp's shape {log_pi.shape}; got {values.shape}")
    price, step = _check_step(tau, eta)
    return _step(log_pi, values, price, step)


class SoftRun(NamedTuple):
    """Values v (iterations + 1, ..., S) and log-probabilities (iterations + 1, ..., S, A)."""

    v: FloatArray
    logp: FloatArray


def regularized_run(
    mdp: TabularMDP, start: ArrayLike, tau: float, eta: float, iterations: int
) -> SoftRun:
    """Repeat `regularized_step` with exact soft values.

    Args:
        mdp: the MDP.
        start: (..., S, A) logits; leading axes run side by side.
        tau, eta: as for `regularized_step`.
        iterations: number of steps.

    Returns:
        SoftRun.

    Raises:
        ValueError: start not finite or of the wrong shape, tau not finite and above 0, eta outside
            (0, 1/tau], iterations below 1.
    """
    logits = check_logits(start, mdp.shape)
    count = validation.whole("iterations", iterations, 1)
    price, step = _check_step(tau, eta)
    logp = [_normalized(logits)]
    values = [_evaluate(mdp, logp[0], price)]
    for _ in range(count):
        logp.append(_step(logp[-1], values[-1].q, price, step))
        values.append(_evaluate(mdp, logp[-1], price))
    return SoftRun(np.stack([v for v, _ in values]), np.stack(logp))


def late_factor(error: FloatArray, low: float = 1e-8, high: float = 1e-2) -> float:
    """Fit the factor by which an error shrinks per update while it lies between two values.

    Args:
        error: (n,) one error an update.
        low, high: the errors between which the logarithm is fitted by a line.

    Returns:
        The factor; NaN if fewer than 3 errors lie between.
    """
    inside = np.flatnonzero((error > low) & (error < high))
    if inside.size < 3:
        return float("nan")
    return float(np.exp(np.polyfit(inside, np.log(error[inside]), 1)[0]))


def _check_logp(mdp: TabularMDP, logp: ArrayLike) -> FloatArray:
    array = check_logits(logp, mdp.shape, "logp")
    validation.probabilities("exp(logp)", np.exp(np.minimum(array, 1.0)))
    return array


def _check_step(tau: float, eta: float) -> tuple[float, float]:
    price, step = validation.positive("tau", tau), validation.positive("eta", eta)
    if 1 - step * price < -1e-12:
        raise ValueError(f"eta must be at most 1/tau = {1 / price:.6g}; got {eta!r}")
    return price, step


def _evaluate(mdp: TabularMDP, logp: FloatArray, tau: float) -> SoftValues:
    pi = np.exp(logp)
    reward = np.vecdot(pi, mdp.r - tau * logp)
    v: FloatArray = np.linalg.solve(bellman_matrix(mdp, pi), reward[..., None])[..., 0]
    return SoftValues(v, backup(mdp, v))


def _step(logp: FloatArray, q: FloatArray, tau: float, eta: float) -> FloatArray:
    return _normalized(max(1 - eta * tau, 0.0) * logp + eta * q)


def _normalized(logits: FloatArray) -> FloatArray:
    """Return log-probabilities; SciPy's function takes as long as the solve of a small MDP."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    logp: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return logp

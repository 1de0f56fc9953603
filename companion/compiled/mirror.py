"""The runs of `companion.mirror` and of its example, compiled: a few microseconds an update."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from companion import mirror, validation
from companion.compiled.jit import kernel
from companion.mdp import TabularMDP
from companion.mirror import Direction, Run, natural_gradient, policy_gradient
from companion.mirror_example import poor_start
from companion.policy import FloatArray, check_logits


def run(
    mdp: TabularMDP,
    direction: Direction,
    start: ArrayLike,
    eta: ArrayLike,
    iterations: int,
    growth: float = 1.0,
) -> Run:
    """Do what `companion.mirror.run` does, to rounding, along one of its two directions.

    logits_{k+1} = logits_k + eta growth^k direction_k,  gap_k = J* - J(pi_k)  (chapter, section 9)

    Args, Returns and Raises: as there; direction must be `policy_gradient` or `natural_gradient`
    of `companion.mirror`, and any other is a ValueError.

    >>> from companion.mdp import two_state_trap
    >>> gap = run(two_state_trap(), natural_gradient, np.zeros((2, 2)), eta=0.1, iterations=9).gap
    >>> bool((gap[1:] < gap[:-1]).all())
    True
    """
    if direction not in (policy_gradient, natural_gradient):
        allowed = "policy_gradient or natural_gradient of companion.mirror"
        raise ValueError(f"direction must be {allowed}; got {direction!r}")
    batch, step = mirror.side_by_side(
        check_logits(start, mdp.shape), validation.finite_array("eta", eta)
    )
    factor = validation.positive("growth", growth)
    count = validation.whole("iterations", iterations, 1)
    logits, leading = batch.copy(), batch.shape[:-2]
    steps = np.broadcast_to(step[..., 0, 0], leading)
    growing = np.array([factor**k for k in range(count)])
    model = mdp.P, mdp.r, mdp.gamma, mdp.mu
    returns = np.empty((count + 1, *leading))
    for at in np.ndindex(leading):
        natural = direction is natural_gradient
        returns[:, *at] = _ascend(*model, steps[at] * growing, natural, logits[at])
    # Logits that overflow stay so until the end, where the readable run's error is raised for them.
    return Run(mirror.optimal_return(mdp) - returns, validation.finite_array("logits", logits))


def comparison(
    mdp: TabularMDP,
    gradient_etas: tuple[float, ...] = (1.0, 10.0),
    natural_etas: tuple[float, ...] = (0.1, 1.0),
    iterations: int = 1000,
    growth: float = 1.0,
    poor_logit: float = 8.0,
) -> dict[tuple[str, str], FloatArray]:
    """Do what `companion.mirror_example.comparison` does, to rounding.

    Args, Returns and Raises: as there.
    """
    starts = {"uniform": np.zeros(mdp.shape), "poor": poor_start(mdp, poor_logit)}
    logits = np.stack(list(starts.values()))
    methods = (
        ("policy gradient", policy_gradient, gradient_etas),
        ("natural PG", natural_gradient, natural_etas),
    )
    ascents = {
        f"{name}, eta {eta:g}": run(mdp, direction, logits, eta, iterations, growth).gap
        for name, direction, etas in methods
        for eta in etas
    }
    # Policy iteration is at its fixed point after a few solves; there is nothing to compile.
    gaps = ascents | {"policy iteration": mirror.policy_iteration(mdp, logits, iterations)}
    return {(name, start): gaps[name][:, i] for i, start in enumerate(starts) for name in gaps}


@kernel
def _ascend(
    P: FloatArray,
    r: FloatArray,
    gamma: float,
    mu: FloatArray,
    steps: FloatArray,
    natural: bool,
    logits: FloatArray,
) -> FloatArray:
    """Update logits (S, A) in place, once for each step; return J of all policies on the way."""
    pi, adv, matrix = np.empty(r.shape), np.empty(r.shape), np.empty((len(mu), len(mu)))
    v, rho, returns = np.empty(len(mu)), np.empty(len(mu)), np.empty(len(steps) + 1)
    for k in range(len(returns)):
        _softmax(logits, pi)
        _bellman(P, r, gamma, pi, matrix, v)
        _factorize(matrix)
        _solve(matrix, v)
        returns[k] = 0.0
        for s in range(len(mu)):
            returns[k] += mu[s] * v[s]
            rho[s] = mu[s]
        if k == len(steps):
            break
        _advantages(P, r, gamma, v, adv)
        if not natural:
            _solve_transposed(matrix, rho)
        for s in range(r.shape[0]):
            for a in range(r.shape[1]):
                weight = 1 / (1 - gamma) if natural else rho[s] * pi[s, a]
                logits[s, a] += steps[k] * weight * adv[s, a]
    return returns


@kernel
def _softmax(logits: FloatArray, pi: FloatArray) -> None:
    for s in range(logits.shape[0]):
        largest = logits[s, 0]
        for a in range(1, logits.shape[1]):
            largest = max(largest, logits[s, a])
        total = 0.0
        for a in range(logits.shape[1]):
            below = logits[s, a] - largest
            # The library takes several times as long over a result that is too small to hold.
            pi[s, a] = math.exp(below) if below > -745 else 0.0
            total += pi[s, a]
        for a in range(logits.shape[1]):
            pi[s, a] /= total


@kernel
def _bellman(
    P: FloatArray, r: FloatArray, gamma: float, pi: FloatArray, matrix: FloatArray, r_pi: FloatArray
) -> None:
    """Fill matrix with I - gamma P_pi, and r_pi with the expected rewards of pi."""
    for s in range(r.shape[0]):
        r_pi[s] = 0.0
        for t in range(r.shape[0]):
            matrix[s, t] = 0.0
        matrix[s, s] = 1.0
        for a in range(r.shape[1]):
            r_pi[s] += pi[s, a] * r[s, a]
            weight = gamma * pi[s, a]
            for t in range(r.shape[0]):
                matrix[s, t] -= weight * P[s, a, t]


@kernel
def _advantages(P: FloatArray, r: FloatArray, gamma: float, v: FloatArray, adv: FloatArray) -> None:
    """Fill adv with r + gamma P v - v."""
    for s in range(r.shape[0]):
        for a in range(r.shape[1]):
            expected = 0.0
            for t in range(r.shape[0]):
                expected += P[s, a, t] * v[t]
            adv[s, a] = r[s, a] + gamma * expected - v[s]


@kernel
def _factorize(matrix: FloatArray) -> None:
    """Replace matrix by its factors L and U, without pivoting.

    In each row of I - gamma P_pi the diagonal outweighs the other entries together, so that
    elimination in the given order is stable (Higham 2002, section 9.5).
    """
    n = len(matrix)
    for k in range(n):
        for i in range(k + 1, n):
            factor = matrix[i, k] / matrix[k, k]
            matrix[i, k] = factor
            for j in range(k + 1, n):
                matrix[i, j] -= factor * matrix[k, j]


@kernel
def _solve(factors: FloatArray, x: FloatArray) -> None:
    """Replace x by the solution y of L U y = x."""
    n = len(x)
    for i in range(n):
        for j in range(i):
            x[i] -= factors[i, j] * x[j]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= factors[i, j] * x[j]
        x[i] /= factors[i, i]


@kernel
def _solve_transposed(factors: FloatArray, x: FloatArray) -> None:
    """Replace x by the solution y of (L U)^T y = x."""
    n = len(x)
    for i in range(n):
        x[i] /= factors[i, i]
        for j in range(i + 1, n):
            x[j] -= factors[i, j] * x[i]
    for i in range(n - 1, -1, -1):
        for j in range(i):
            x[j] -= factors[i, j] * x[i]

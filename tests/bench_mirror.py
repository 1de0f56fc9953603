"""Benchmark of the mirror table and of one evaluation: rows() and growth() for `make bench`.

The plain version is the protocol as written: one run after another, each update one evaluation of
one policy by linear solves, the visitation solved for only where the policy gradient needs it.
"""

from __future__ import annotations

import statistics
import tracemalloc
from collections.abc import Callable

import numpy as np

from companion.mdp import TabularMDP, evaluate, random_mdp, solve_values
from companion.mirror import natural_gradient
from companion.mirror_example import comparison
from companion.policy import FloatArray, softmax, uniform
from tests.timing import medians, seconds

ITERATIONS = 1000
REPEATS = 15
STATES = (20, 50, 100, 200, 500, 1000)


def rows() -> list[tuple[str, float, float]]:
    """Return (name, seconds of the plain version, seconds of companion's)."""
    mdp = random_mdp(rng=np.random.default_rng(0))
    measured = medians(
        lambda _: plain_comparison(mdp),
        lambda _: list(comparison(mdp, iterations=ITERATIONS).values()),
        REPEATS,
        agree,
    )
    return [("mirror table, 10 runs", *measured)]


def agree(expected: list[FloatArray], gaps: list[FloatArray]) -> None:
    """Raise an error unless both give the same gaps."""
    for gap, reference in zip(gaps, expected, strict=True):
        np.testing.assert_allclose(gap, reference, rtol=0, atol=1e-9)


def plain_comparison(mdp: TabularMDP) -> list[FloatArray]:
    """Run the table's ten runs one after another, in its order; return their gaps."""
    q = np.zeros(mdp.shape)
    for _ in range(1000):
        q = mdp.r + mdp.gamma * mdp.P @ q.max(axis=1)
    best = mdp.mu @ q.max(axis=1)
    _, q, _ = plain_evaluate(mdp, uniform(*mdp.shape))
    poor = np.zeros(mdp.shape)
    poor[np.arange(len(q)), q.argmin(axis=1)] = 8.0
    gaps = []
    for start in (np.zeros(mdp.shape), poor):
        for method, eta in (("gradient", 1), ("gradient", 10), ("natural", 0.1), ("natural", 1)):
            gaps.append(best - plain_ascent(mdp, method, eta, start))
        gaps.append(best - plain_policy_iteration(mdp, start))
    return gaps


def plain_evaluate(mdp: TabularMDP, pi: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return v, q and the transitions P_pi of one policy."""
    P_pi = np.einsum("sa,sat->st", pi, mdp.P)
    r_pi = (pi * mdp.r).sum(axis=1)
    v = np.linalg.solve(np.eye(len(r_pi)) - mdp.gamma * P_pi, r_pi)
    return v, mdp.r + mdp.gamma * mdp.P @ v, P_pi


def plain_softmax(theta: FloatArray) -> FloatArray:
    weights = np.exp(theta - theta.max(axis=1, keepdims=True))
    pi: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return pi


def plain_ascent(mdp: TabularMDP, method: str, eta: float, start: FloatArray) -> FloatArray:
    """Return the returns of one run of the policy gradient or of the natural gradient."""
    theta = start.copy()
    returns = np.empty(ITERATIONS + 1)
    for k in range(ITERATIONS + 1):
        pi = plain_softmax(theta)
        v, q, P_pi = plain_evaluate(mdp, pi)
        adv = q - v[:, None]
        returns[k] = mdp.mu @ v
        if method == "gradient":
            matrix = np.eye(len(v)) - mdp.gamma * P_pi.T
            d = (1 - mdp.gamma) * np.linalg.solve(matrix, mdp.mu)
            theta += eta * d[:, None] * pi * adv / (1 - mdp.gamma)
        else:
            theta += eta * adv / (1 - mdp.gamma)
    return returns


def plain_policy_iteration(mdp: TabularMDP, start: FloatArray) -> FloatArray:
    """Return the returns of one run of policy iteration."""
    pi = plain_softmax(start)
    returns = np.empty(ITERATIONS + 1)
    for k in range(ITERATIONS + 1):
        v, q, _ = plain_evaluate(mdp, pi)
        returns[k] = mdp.mu @ v
        pi = np.eye(q.shape[1])[q.argmax(axis=1)]
    return returns


def growth() -> list[tuple[str, int, float, float]]:
    """Return (work, states, seconds, peak megabytes) of an evaluation and of a natural step."""
    table = []
    for n_states in STATES:
        mdp = random_mdp(n_states, rng=np.random.default_rng(0))
        work: dict[str, Callable[[TabularMDP], object]] = {
            "evaluation": lambda mdp: evaluate(mdp, uniform(*mdp.shape)),
            "natural-gradient update": natural_update,
        }
        table += [(name, n_states, *_cost(call, mdp)) for name, call in work.items()]
    return table


def natural_update(mdp: TabularMDP) -> FloatArray:
    """Make one update of the natural gradient from the uniform policy, as `run` does."""
    logits = np.zeros(mdp.shape)
    pi = softmax(logits)
    return logits + natural_gradient(mdp, pi, solve_values(mdp, pi))


def _cost(call: Callable[[TabularMDP], object], mdp: TabularMDP) -> tuple[float, float]:
    """Return the median seconds of a call and the peak of what it allocates, in megabytes."""
    typical = statistics.median(seconds(lambda: call(mdp))[0] for _ in range(5))
    tracemalloc.start()
    call(mdp)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return typical, peak / 1e6


if __name__ == "__main__":
    print(rows())
    print(*growth(), sep="\n")

"""Entropy-regularized MDPs: fixed points, closed forms, and the rates that theory promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp

from companion.mdp import TabularMDP, evaluate, optimal_action_values, random_mdp
from companion.policy import FloatArray, uniform
from companion.regularized import (
    late_factor,
    regularized_run,
    regularized_step,
    soft_optimum,
    soft_values,
)


def drawn(seed: int) -> tuple[TabularMDP, FloatArray, float]:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(6, 3, rng.uniform(0.3, 0.98), rng=rng)
    return mdp, log_softmax(rng.normal(size=(6, 3)), axis=1), 10 ** rng.uniform(-2, 1)


problems = st.builds(drawn, st.integers(0, 2**32))
Problem = tuple[TabularMDP, FloatArray, float]


@given(problems)
def test_soft_values_solve_their_equations(problem: Problem) -> None:
    mdp, logp, tau = problem
    v, q = soft_values(mdp, logp, tau)
    size = 1 + np.abs(v).max()
    assert np.abs(v - (np.exp(logp) * (q - tau * logp)).sum(axis=1)).max() < 1e-12 * size
    assert np.abs(q - mdp.r - mdp.gamma * mdp.P @ v).max() < 1e-12 * size


def test_soft_values_are_values_and_entropy() -> None:
    """A uniform policy earns log A nats in every state, for ever."""
    mdp = random_mdp(rng=np.random.default_rng(0))
    pi = uniform(*mdp.shape)
    expected = evaluate(mdp, pi).v + 0.3 * np.log(4) / (1 - mdp.gamma)
    np.testing.assert_allclose(soft_values(mdp, np.log(pi), 0.3).v, expected, rtol=1e-12)


def test_a_batch_equals_its_policies_one_by_one() -> None:
    mdp, logp, tau = drawn(1)
    batch = np.stack([logp, np.log(uniform(*mdp.shape))])
    together = soft_values(mdp, batch, tau)
    for i in range(2):
        alone = soft_values(mdp, batch[i], tau)
        np.testing.assert_allclose(together.v[i], alone.v, rtol=1e-12)
        np.testing.assert_allclose(together.q[i], alone.q, rtol=1e-12)


@given(problems)
def test_soft_optimum_is_the_best_policy(problem: Problem) -> None:
    mdp, logp, tau = problem
    v, q, best = soft_optimum(mdp, tau)
    size = 1 + np.abs(v).max()
    np.testing.assert_allclose(v, tau * logsumexp(q / tau, axis=1), atol=1e-11 * size)
    np.testing.assert_allclose(soft_values(mdp, best, tau).v, v, atol=1e-10 * size)
    assert (soft_values(mdp, logp, tau).v <= v + 1e-10 * size).all()
    nearby = log_softmax(best + 0.1 * np.random.default_rng(0).normal(size=best.shape), axis=1)
    assert (soft_values(mdp, nearby, tau).v <= v + 1e-10 * size).all()


def test_soft_optimum_becomes_the_optimum_without_entropy() -> None:
    """v* <= v*_tau <= v* + tau log A / (1 - gamma)."""
    mdp = random_mdp(rng=np.random.default_rng(0))
    best = optimal_action_values(mdp).max(axis=1)
    for tau in (0.1, 0.01, 0.001):
        excess = soft_optimum(mdp, tau).v - best
        assert (excess >= 0).all()
        assert (excess <= tau * np.log(4) / (1 - mdp.gamma)).all()


@given(problems, st.floats(0, 0.99))
def test_step_has_its_closed_form(problem: Problem, keep: float) -> None:
    mdp, logp, tau = problem
    q = soft_values(mdp, logp, tau).q
    weights = np.exp(keep * logp) * np.exp((1 - keep) / tau * (q - q.max()))
    expected = np.log(weights / weights.sum(axis=1, keepdims=True))
    stepped = regularized_step(logp, q, tau, (1 - keep) / tau)
    np.testing.assert_allclose(stepped, expected, rtol=1e-9, atol=1e-9)


@given(problems, st.floats(0.05, 0.95))
def test_run_improves_and_keeps_the_bounds(problem: Problem, keep: float) -> None:
    """The rate of Cen et al. 2022, theorem 1, whose step is eta (1 - gamma) here."""
    mdp, logp, tau = problem
    optimum = soft_optimum(mdp, tau)
    eta = (1 - keep) / tau
    result = regularized_run(mdp, logp, tau, eta, 40)
    size = 1 + np.abs(optimum.v).max()
    assert (np.diff(result.v, axis=0) >= -1e-10 * size).all()
    distance = np.abs(optimum.q - soft_values(mdp, result.logp, tau).q).max(axis=(1, 2))
    first = distance[0] + 2 * tau * keep * np.abs(optimum.logp - logp).max()
    rate = 1 - eta * tau * (1 - mdp.gamma)
    bound = first * mdp.gamma * rate ** np.arange(40)
    assert (distance[1:] <= bound + 1e-9 * size).all()


@pytest.mark.parametrize("n_states", [5, 40])
@pytest.mark.parametrize("keep", [0.5, 0.8])
def test_the_late_rate_is_the_power_of_the_old_policy(n_states: int, keep: float) -> None:
    mdp = random_mdp(n_states, rng=np.random.default_rng(n_states))
    optimum = soft_optimum(mdp, 0.1)
    result = regularized_run(mdp, np.zeros(mdp.shape), 0.1, (1 - keep) / 0.1, 80)
    error = np.abs(result.logp - optimum.logp).max(axis=(1, 2))
    late = np.flatnonzero((error < 1e-3) & (error > 1e-8))
    np.testing.assert_allclose(error[late[1:]] / error[late[:-1]], keep, rtol=0.01)
    value = np.abs(result.v - optimum.v).max(axis=1)[late]
    kept = value > 1e-11
    np.testing.assert_allclose((value[1:] / value[:-1])[kept[1:]], keep**2, rtol=0.05)


def test_soft_policy_iteration_is_quadratic() -> None:
    mdp = random_mdp(rng=np.random.default_rng(0))
    optimum = soft_optimum(mdp, 0.1)
    result = regularized_run(mdp, np.zeros(mdp.shape), 0.1, 10.0, 6)
    error = np.abs(result.logp - optimum.logp).max(axis=(1, 2))
    assert error[2] < 10
    assert error[-1] < 1e-9


def test_a_batch_of_runs_equals_the_runs() -> None:
    mdp, logp, tau = drawn(2)
    starts = np.stack([logp, np.zeros(mdp.shape)])
    together = regularized_run(mdp, starts, tau, 0.5 / tau, 5)
    for i, start in enumerate(starts):
        alone = regularized_run(mdp, start, tau, 0.5 / tau, 5)
        np.testing.assert_allclose(together.v[:, i], alone.v, rtol=1e-12)
        np.testing.assert_allclose(together.logp[:, i], alone.logp, rtol=1e-11, atol=1e-12)


def test_late_factor_of_a_geometric_sequence() -> None:
    assert late_factor(3 * 0.6 ** np.arange(60)) == pytest.approx(0.6)
    assert np.isnan(late_factor(np.array([1.0, 1e-9])))


def test_bad_input_is_refused() -> None:
    mdp, logp, _ = drawn(0)
    good: dict[str, Any] = {"start": logp, "tau": 0.1, "eta": 5.0, "iterations": 3}
    for change, message in [
        ({"tau": 0.0}, "tau must be finite and above 0; got 0.0"),
        ({"tau": np.nan}, "tau must be finite and above 0; got nan"),
        ({"eta": 0.0}, "eta must be finite and above 0; got 0.0"),
        ({"eta": 11.0}, r"eta must be at most 1/tau = 10; got 11.0"),
        ({"start": np.zeros((3, 6))}, r"start must have shape \(..., 6, 3\); got \(3, 6\)"),
        ({"start": logp * np.nan}, "start must be finite"),
        ({"iterations": 0}, "iterations must be a whole number of at least 1; got 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            regularized_run(mdp, **(good | change))
    with pytest.raises(ValueError, match=r"q must be finite; q\[0, 0\] is nan"):
        regularized_step(logp, logp * np.nan, 0.1, 1.0)
    with pytest.raises(ValueError, match="logp must be finite; logp"):
        regularized_step(logp - np.inf, logp, 0.1, 1.0)
    with pytest.raises(ValueError, match=r"q must have logp's shape \(6, 3\); got \(3, 6\)"):
        regularized_step(logp, logp.T, 0.1, 1.0)
    with pytest.raises(ValueError, match=r"logp must have shape \(..., 6, 3\); got \(3, 6\)"):
        soft_values(mdp, logp.T, 0.1)
    with pytest.raises(ValueError, match=r"exp\(logp\)\[0\] must sum to 1"):
        soft_values(mdp, logp + 0.1, 0.1)
    with pytest.raises(ValueError, match="tau must be finite and above 0"):
        soft_optimum(mdp, -1.0)


@pytest.mark.parametrize("gamma", [0.9999, 0.99999, 1 - 1e-7])
def test_the_optimum_is_found_where_rounding_is_large(gamma: float) -> None:
    """Its values are v = tau log sum exp(q / tau), to the solve's own rounding."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        P, r = rng.dirichlet(np.ones(4), size=(4, 2)), rng.normal(size=(4, 2))
        v, q, _ = soft_optimum(TabularMDP(P, r, gamma, np.full(4, 0.25)), 0.1)
        np.testing.assert_allclose(0.1 * logsumexp(q / 0.1, axis=1), v, rtol=1e-12)


def test_a_temperature_too_small_to_divide_by() -> None:
    with pytest.raises(ValueError, match="tau must not be this small beside the rewards"):
        soft_optimum(random_mdp(rng=np.random.default_rng(0)), 1e-310)

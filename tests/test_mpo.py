"""MPO's E-step: its constraint, its dual, and an optimizer that knows neither."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from companion.mpo import dual, e_step
from companion.policy import FloatArray, kl, random_policy


def drawn(seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    pi = random_policy(5, 3, rng=rng)
    q = 10 ** rng.uniform(-3, 3) * rng.normal(size=(5, 3))
    return pi, q, rng.dirichlet(np.ones(5))


problems = st.builds(drawn, st.integers(0, 2**32))
Problem = tuple[FloatArray, FloatArray, FloatArray]


def largest_radius(pi: FloatArray, q: FloatArray, weights: FloatArray) -> float:
    return float(-weights @ np.log(pi[np.arange(len(pi)), q.argmax(axis=1)]))


@given(problems, st.floats(1e-4, 0.95))
def test_the_constraint_is_met_with_equality(problem: Problem, share: float) -> None:
    pi, q, weights = problem
    radius = share * largest_radius(pi, q, weights)
    step = e_step(pi, q, weights, radius)
    assert weights @ kl(step.policy, pi) == pytest.approx(radius, rel=1e-8)
    tilted = np.log(pi) + q / step.temperature
    tilted -= tilted.max(axis=1, keepdims=True)
    tilted -= np.log(np.exp(tilted).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(step.policy, np.exp(tilted), rtol=1e-8, atol=1e-12)


@given(problems, st.floats(1e-3, 0.9))
def test_the_dual_is_least_at_the_temperature_and_equals_the_primal(
    problem: Problem, share: float
) -> None:
    pi, q, weights = problem
    radius = share * largest_radius(pi, q, weights)
    policy, temperature = e_step(pi, q, weights, radius)
    least = dual(temperature, pi, q, weights, radius)
    size = np.abs(q).max()
    assert least == pytest.approx(weights @ (policy * q).sum(axis=1), abs=1e-9 * size)
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert dual(factor * temperature, pi, q, weights, radius) > least - 1e-12 * size


def test_the_step_equals_a_numerical_optimizer() -> None:
    pi = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
    q = np.array([[0.0, 1.0, 2.0], [1.0, 0.5, 0.0]])
    weights, radius = np.array([0.3, 0.7]), 0.05

    def policy(x: Any) -> FloatArray:
        positive = np.abs(x.reshape(2, 3)) + 1e-12
        normalized: FloatArray = positive / positive.sum(axis=1, keepdims=True)
        return normalized

    found = optimize.minimize(
        lambda x: -weights @ (policy(x) * q).sum(axis=1),
        pi.ravel(),
        constraints={"type": "ineq", "fun": lambda x: radius - weights @ kl(policy(x), pi)},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    np.testing.assert_allclose(e_step(pi, q, weights, radius).policy, policy(found.x), atol=1e-4)


def test_two_actions_have_their_closed_form() -> None:
    """From (1/2, 1/2) the new odds are exp(D/T); KL = log 2 - entropy."""
    for p in (0.6, 0.9, 0.999):
        radius = np.log(2) + p * np.log(p) + (1 - p) * np.log(1 - p)
        step = e_step([[0.5, 0.5]], [[1.0, 3.0]], [1.0], radius)
        np.testing.assert_allclose(step.policy, [[1 - p, p]], rtol=1e-8)
        assert step.temperature == pytest.approx(2 / np.log(p / (1 - p)), rel=1e-8)


def test_bad_input_is_refused() -> None:
    pi, q, weights = drawn(0)
    limit = largest_radius(pi, q, weights)
    with pytest.raises(ValueError, match=f"delta must be below {limit:.6g}"):
        e_step(pi, q, weights, 1.01 * limit)
    with pytest.raises(ValueError, match="q must tell the actions of some state apart"):
        e_step(pi, np.ones((5, 3)), weights, 0.1)
    for radius in (0, -1, np.inf, np.nan):
        with pytest.raises(ValueError, match="delta must be finite and above 0; got"):
            e_step(pi, q, weights, radius)
    with pytest.raises(ValueError, match=r"must have shapes \(S, A\), \(S, A\) and \(S,\); got"):
        e_step(pi, q.T, weights, 0.1)
    with pytest.raises(ValueError, match="weights must sum to 1"):
        e_step(pi, q, 2 * weights, 0.1)
    with pytest.raises(ValueError, match=r"pi_old\[0\] must sum to 1"):
        e_step(2 * pi, q, weights, 0.1)
    with pytest.raises(ValueError, match="q must be finite"):
        e_step(pi, q * np.nan, weights, 0.1)
    with pytest.raises(ValueError, match="temperature must be finite and above 0; got 0"):
        dual(0, pi, q, weights, 0.1)


@pytest.mark.parametrize("gap", [1e-3, 1e-12, 1e-15])
@pytest.mark.parametrize("p", [0.6, 0.999])
def test_values_that_are_nearly_equal_have_their_closed_form(gap: float, p: float) -> None:
    q = np.array([[1.0, 1.0 + gap]])
    radius = np.log(2) + p * np.log(p) + (1 - p) * np.log(1 - p)
    step = e_step([[0.5, 0.5]], q, [1.0], radius)
    np.testing.assert_allclose(step.policy, [[1 - p, p]], rtol=1e-8)
    gap_in_float64 = q[0, 1] - q[0, 0]
    assert step.temperature == pytest.approx(gap_in_float64 / np.log(p / (1 - p)), rel=1e-8)


def test_a_state_of_nearly_equal_values_beside_another_counts_up_to_the_greedy_policy() -> None:
    pi, q = np.full((2, 2), 0.5), np.array([[1.0, 1.0 + 1e-13], [0.0, 5.0]])
    for share in (0.3, 0.6, 0.99):  # from a half on both states have to move
        step = e_step(pi, q, [0.5, 0.5], share * np.log(2))
        assert kl(step.policy, pi).mean() == pytest.approx(share * np.log(2), rel=1e-8)
    with pytest.raises(ValueError, match=r"delta must be below 0\.693147, the mean KL of"):
        e_step(pi, q, [0.5, 0.5], 1.001 * np.log(2))


@pytest.mark.parametrize("values", [[0.0, 1e12, -1e12], [0.0, 0.0, 0.0]])
def test_a_state_of_weight_0_has_no_say(values: list[float]) -> None:
    pi, q, weights = drawn(3)
    alone = e_step(pi, q, weights, 0.1)
    more = e_step(np.vstack([pi, pi[:1]]), np.vstack([q, values]), [*weights, 0.0], 0.1)
    assert more.temperature == pytest.approx(alone.temperature, rel=1e-12)
    np.testing.assert_allclose(more.policy[:5], alone.policy, rtol=1e-10)
    assert more.policy[5].sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="weights are above 0; all these values are equal"):
        e_step(np.vstack([pi[:1], pi[:1]]), [[2.0] * 3, values], [1.0, 0.0], 0.1)


def test_an_action_that_the_old_policy_never_takes_has_no_say() -> None:
    pi, q = np.array([[0.5, 0.5, 0.0]]), np.array([[1.0, 3.0, 1e9]])
    step, two = e_step(pi, q, [1.0], 0.2), e_step(pi[:, :2], q[:, :2], [1.0], 0.2)
    assert step.temperature == pytest.approx(two.temperature, rel=1e-12)
    np.testing.assert_allclose(step.policy, [[*two.policy[0], 0.0]], rtol=1e-12)
    with pytest.raises(ValueError, match="among those that pi_old takes"):
        e_step(pi, [[1.0, 1.0, 2.0]], [1.0], 0.2)

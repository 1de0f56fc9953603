"""The exact penalized step against an optimizer, its stationarity, and the loop around it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from companion.penalty import (
    ITERATIONS,
    TARGET_KL,
    penalized_policy,
    penalty_loop,
    share_on_target,
)
from companion.policy import FloatArray, kl, random_policy, softmax


@pytest.mark.parametrize("beta", [0.05, 1.0, 20.0])
def test_no_optimizer_finds_a_better_penalized_policy(beta: float) -> None:
    rng = np.random.default_rng(0)
    old, adv = random_policy(1, 4, rng=rng), rng.standard_normal((1, 4))

    def loss(logits: FloatArray) -> float:
        new = softmax(logits[None])
        return float(-(new * adv).sum() + beta * kl(old, new)[0])

    found = minimize(loss, np.log(old[0]), method="BFGS", options={"gtol": 1e-9})
    exact = penalized_policy(old, adv, beta)
    np.testing.assert_allclose(softmax(found.x), exact[0], atol=1e-5)
    assert loss(np.log(exact[0])) <= found.fun + 1e-12


def test_the_penalized_step_meets_its_stationarity_condition_in_extreme_cases() -> None:
    rng = np.random.default_rng(1)
    old = 0.999 * random_policy(500, 5, rng=rng, concentration=0.3) + 0.001 / 5
    adv = rng.standard_normal((500, 5)) * 10.0 ** rng.uniform(-4, 4, (500, 1))
    new = penalized_policy(old, adv, 1.0)
    multiplier = adv + old / new
    scale = np.abs(multiplier).max(axis=1)
    assert (np.ptp(multiplier, axis=1) <= 1e-9 * scale).all()


def test_advantages_count_up_to_a_constant_and_relative_to_beta() -> None:
    rng = np.random.default_rng(2)
    old, adv = random_policy(20, 3, rng=rng), rng.standard_normal((20, 3))
    new = penalized_policy(old, adv, 2.0)
    np.testing.assert_allclose(penalized_policy(old, 3 * adv + 7, 6.0), new, atol=1e-12)


@pytest.mark.parametrize(
    ("old", "adv", "beta", "message"),
    [
        ([[1.0, 0.0]], [[0.0, 0.0]], 1.0, r"old must be above 0 everywhere; old\[0, 1\] is 0"),
        ([[0.5, 0.6]], [[0.0, 0.0]], 1.0, r"old\[0\] must sum to 1"),
        ([[0.5, 0.5]], [[0.0, 0.0]], 0.0, r"beta must be above 0; got 0.0"),
        ([[0.5, 0.5]], [[0.0, 0.0]], np.nan, r"beta must be finite; beta is nan"),
        ([[0.5, 0.5]], [[0.0] * 3], 1.0, r"adv must have old's shape \(1, 2\); got \(1, 3\)"),
        ([[0.5, 0.5]], [[0.0, np.inf]], 1.0, r"adv must be finite; adv\[0, 1\] is inf"),
    ],
)
def test_a_penalized_step_that_has_no_solution_is_refused(
    old: list[list[float]], adv: list[list[float]], beta: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        penalized_policy(old, adv, beta)


@pytest.mark.parametrize(("drift", "beta"), [(0.0, 1.0), (np.inf, 1.0), (1.0, 0.0), (1.0, np.nan)])
def test_a_loop_needs_a_positive_scale_and_coefficient(drift: float, beta: float) -> None:
    with pytest.raises(ValueError, match=r"(drift|beta) must be finite and above 0"):
        penalty_loop(drift, beta, adaptive=True, rng=np.random.default_rng(0))


def test_on_target_is_within_a_factor_of_four() -> None:
    measured = TARGET_KL * np.array([[1.0, 0.2], [4.0, 5.0], [0.25, 1.0], [0.24, 1.0]])
    assert share_on_target(measured).tolist() == [0.75, 0.5]


def test_the_first_kl_of_the_loop_is_half_the_variance_over_beta_squared() -> None:
    beta = 50.0
    measured, betas = penalty_loop(
        1.0, beta, adaptive=False, rng=np.random.default_rng(0), n_states=20_000
    )
    assert measured[0, 0] == pytest.approx(3 / 4 / (2 * beta**2), rel=0.03)  # uniform, 4 actions
    assert (betas == beta).all()


def test_an_adaptive_coefficient_moves_by_factors_of_two_and_only_outside_the_zone() -> None:
    measured, betas = penalty_loop(30.0, 1.0, adaptive=True, rng=np.random.default_rng(0))
    assert measured.shape == (ITERATIONS, 1)
    factor = (betas[1:] / betas[:-1])[:, 0]
    relative = measured[:-1, 0] / TARGET_KL
    np.testing.assert_array_equal(factor == 2, relative > 1.5)
    np.testing.assert_array_equal(factor == 0.5, relative < 1 / 1.5)
    assert set(factor) <= {0.5, 1.0, 2.0}

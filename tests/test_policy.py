"""Policies against scipy, finite differences and what the divergence must satisfy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats

from companion.policy import (
    check_policy,
    greedy,
    kl,
    logit_bounds,
    mixture,
    random_policy,
    score,
    softmax,
    uniform,
)

logits = arrays(np.float64, (3, 4), elements=st.floats(-600, 600))
moderate_logits = arrays(np.float64, (3, 4), elements=st.floats(-20, 20))


@given(logits)
def test_softmax_equals_scipy(x: np.ndarray[Any, np.dtype[np.float64]]) -> None:
    np.testing.assert_allclose(softmax(x), special.softmax(x, axis=-1), rtol=1e-12, atol=1e-300)


def test_softmax_of_logits_of_any_finite_size() -> None:
    assert softmax([1e308, -1e308, 0.0]).tolist() == [1.0, 0.0, 0.0]
    assert softmax([-1e308, -1e308]).tolist() == [0.5, 0.5]


@given(moderate_logits, st.floats(-100, 100))
def test_softmax_ignores_a_constant_in_each_state(
    x: np.ndarray[Any, np.dtype[np.float64]], constant: float
) -> None:
    np.testing.assert_allclose(softmax(x + constant), softmax(x), rtol=1e-11)


def test_greedy_takes_the_first_of_equal_actions() -> None:
    assert greedy([[1.0, 3.0, 3.0], [0.0, 0.0, 0.0]]).tolist() == [[0, 1, 0], [1, 0, 0]]


def test_uniform_and_random_policies_are_policies() -> None:
    assert uniform(2, 4).tolist() == [[0.25] * 4] * 2
    drawn = random_policy(500, 3, rng=np.random.default_rng(0), concentration=0.3)
    check_policy(drawn, (500, 3))
    # A symmetric Dirichlet coordinate has mean 1/3 and variance (2/9)/(3 * 0.3 + 1).
    assert drawn[:, 0].mean() == pytest.approx(1 / 3, abs=4 * np.sqrt(0.117 / 500))
    assert drawn[:, 0].var() == pytest.approx(0.117, rel=0.15)


@given(moderate_logits, moderate_logits)
def test_kl_equals_scipy(
    x: np.ndarray[Any, np.dtype[np.float64]], y: np.ndarray[Any, np.dtype[np.float64]]
) -> None:
    old, new = softmax(x), softmax(y)
    expected = [stats.entropy(p, q) for p, q in zip(old, new, strict=True)]
    np.testing.assert_allclose(kl(old, new), expected, rtol=1e-8, atol=1e-14)


@given(moderate_logits, moderate_logits)
def test_kl_is_zero_only_at_equality(
    x: np.ndarray[Any, np.dtype[np.float64]], y: np.ndarray[Any, np.dtype[np.float64]]
) -> None:
    old, new = softmax(x), softmax(y)
    apart = (np.abs(new - old) > 1e-12 * old).any(axis=-1)
    assert (kl(old, old) == 0).all()
    assert (kl(old, new)[apart] > 0).all()
    assert (kl(old, new) >= 0).all()


@pytest.mark.parametrize("shift", [1e-3, 1e-5, 1e-7])
def test_a_small_kl_keeps_its_digits(shift: float) -> None:
    """KL((1/2, 1/2) || (1/2 + h, 1/2 - h)) = -log(1 - 4 h^2)/2 = 2 h^2 + 4 h^4 + ..."""
    old, new = [[0.5, 0.5]], [[0.5 + shift, 0.5 - shift]]
    assert kl(old, new).item() == pytest.approx(2 * shift**2 + 4 * shift**4, rel=1e-8)


def test_kl_at_the_edge_of_the_simplex() -> None:
    assert kl([[0.5, 0.5]], [[1.0, 0.0]]).item() == np.inf
    assert kl([[1.0, 0.0]], [[0.5, 0.5]]).item() == pytest.approx(np.log(2))
    assert kl([[1.0, 0.0]], [[1.0, 0.0]]).item() == 0
    # An action that is nearly ruled out is not ruled out.
    for tiny in (1e-17, 1e-200, 1e-310):
        expected = 0.5 * np.log(0.5) + 0.5 * (np.log(0.5) - np.log(tiny))
        assert kl([[0.5, 0.5]], [[1 - tiny, tiny]]).item() == pytest.approx(expected)
        assert kl([[1 - tiny, tiny]], [[0.5, 0.5]]).item() == pytest.approx(np.log(2))


def test_kl_broadcasts_over_a_batch() -> None:
    rng = np.random.default_rng(0)
    old = random_policy(3, 4, rng=rng)
    new = np.stack([random_policy(3, 4, rng=rng) for _ in range(5)])
    assert kl(old, new).shape == (5, 3)
    np.testing.assert_array_equal(kl(old, new)[2], kl(old, new[2]))


def test_mixture_is_the_weighted_mean() -> None:
    rng = np.random.default_rng(0)
    old, new = (random_policy(3, 4, rng=rng) for _ in range(2))
    mixed = mixture(old, new, [0.0, 0.25, 1.0])
    np.testing.assert_array_equal(mixed[0], old)
    np.testing.assert_allclose(mixed[1], 0.75 * old + 0.25 * new, rtol=1e-15)
    np.testing.assert_array_equal(mixed[2], new)
    assert mixture(old, new, 0.5).shape == (3, 4)


def test_score_equals_finite_differences() -> None:
    x = np.random.default_rng(0).normal(size=(3, 4))
    h = 1e-6
    for b in range(4):
        shift = h * np.eye(4)[b]
        slope = (np.log(softmax(x + shift)) - np.log(softmax(x - shift))) / (2 * h)
        np.testing.assert_allclose(score(softmax(x))[..., b], slope, atol=1e-9)


def test_score_has_mean_zero_under_the_policy() -> None:
    pi = random_policy(3, 4, rng=np.random.default_rng(0))
    np.testing.assert_allclose(np.einsum("sa,sab->sb", pi, score(pi)), 0, atol=1e-15)


@pytest.mark.parametrize("p", [0.001, 0.3, 0.5, 0.8, 0.97])
@pytest.mark.parametrize("clip_range", [0.05, 0.2, 0.5])
def test_a_change_of_the_bound_puts_the_ratio_on_the_edge(p: float, clip_range: float) -> None:
    logit = np.log(p / (1 - p))
    for change, edge in zip(logit_bounds(p, clip_range), (-clip_range, clip_range), strict=True):
        if np.isfinite(change):
            assert softmax([logit + change, 0.0])[0] / p == pytest.approx(1 + edge, abs=1e-12)
        else:
            assert edge > 0
            assert p * (1 + clip_range) >= 1


def test_narrow_bands_allow_eps_over_one_minus_p() -> None:
    p = np.array([0.1, 0.5, 0.9])
    low, high = logit_bounds(p, 1e-6)
    np.testing.assert_allclose(high, 1e-6 / (1 - p), rtol=1e-4)
    np.testing.assert_allclose(low, -1e-6 / (1 - p), rtol=1e-4)


@pytest.mark.parametrize(("p", "clip_range"), [(0.0, 0.2), (1.0, 0.2), (0.5, 0.0), (0.5, 1.0)])
def test_bounds_need_probabilities_and_ranges_inside_the_unit_interval(
    p: float, clip_range: float
) -> None:
    with pytest.raises(ValueError, match=r"must lie in \(0, 1\); got"):
        logit_bounds(p, clip_range)


@pytest.mark.parametrize(
    ("pi", "message"),
    [
        ([0.5, 0.5], r"pi must have shape \(..., 2, 2\); got \(2,\)"),
        ([[0.5, 0.5]], r"pi must have shape \(..., 2, 2\); got \(1, 2\)"),
        ([[0.5, 0.5], [0.5, 0.6]], r"pi\[1\] must sum to 1 over its last axis; it sums to 1.1"),
        ([[1.5, -0.5], [0.5, 0.5]], r"pi must not be negative; pi\[0, 1\] is -0.5"),
        ([[0.5, 0.5], [np.nan, 0.5]], r"pi must be finite; pi\[1, 0\] is nan"),
        ([[0.5, 0.5], [np.inf, 0.5]], r"pi must be finite; pi\[1, 0\] is inf"),
    ],
)
def test_what_is_no_policy_is_refused(pi: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_policy(pi, (2, 2))


def test_other_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match=r"logits must be finite; logits\[1\] is nan"):
        softmax([0.0, np.nan])
    with pytest.raises(ValueError, match="q must be finite"):
        greedy([[np.inf, 0.0]])
    with pytest.raises(ValueError, match=r"alpha must lie in \[0, 1\]; got 1.5"):
        mixture([[1.0, 0.0]], [[0.0, 1.0]], 1.5)
    with pytest.raises(ValueError, match=r"other must have shape"):
        mixture([[1.0, 0.0]], [[0.0, 0.5, 0.5]], 0.5)
    with pytest.raises(ValueError, match=r"new must have shape \(..., 1, 2\); got \(1, 3\)"):
        kl([[1.0, 0.0]], [[0.0, 0.5, 0.5]])
    with pytest.raises(ValueError, match="concentration must be finite and above 0; got 0"):
        random_policy(2, 2, rng=np.random.default_rng(0), concentration=0)


@pytest.mark.parametrize("size", [0, -1, 2.5, np.nan])
def test_policies_of_impossible_sizes_are_refused(size: Any) -> None:
    rng = np.random.default_rng(0)
    message = f"must be a whole number of at least 1; got {size!r}"
    with pytest.raises(ValueError, match=f"n_states {message}"):
        uniform(size, 2)
    with pytest.raises(ValueError, match=f"n_actions {message}"):
        uniform(2, size)
    with pytest.raises(ValueError, match=f"n_states {message}"):
        random_policy(size, 2, rng=rng)
    with pytest.raises(ValueError, match=f"n_actions {message}"):
        random_policy(2, size, rng=rng)


def test_a_float32_softmax_is_a_policy_and_its_divergence_keeps_its_digits() -> None:
    logits = np.random.default_rng(0).standard_normal((50, 7)).astype(np.float32)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    pi = weights / weights.sum(axis=-1, keepdims=True)
    exact = special.softmax(logits.astype(np.float64), axis=-1)
    np.testing.assert_allclose(check_policy(pi), exact, rtol=1e-6)
    assert (kl(pi, pi) == 0).all()
    assert kl(pi, exact).max() < 1e-12

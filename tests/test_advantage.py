"""GAE and TD(lambda) against direct sums, at both ends of lambda, and across boundaries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.advantage import gae, lambda_targets, standardized, td_errors

unit = st.floats(0, 1)


def direct_sum(td_error: np.ndarray, last: np.ndarray, decay: float) -> np.ndarray:
    """Each advantage as the sum that defines it, term by term."""
    n = len(td_error)
    result = np.zeros(n)
    for t in range(n):
        for k in range(t, n):
            result[t] += decay ** (k - t) * td_error[k]
            if last[k]:
                break
    return result


@given(seed=st.integers(0, 10_000), n=st.integers(1, 40), gamma=unit, lam=unit)
def test_gae_is_the_direct_sum_within_each_stretch(
    seed: int, n: int, gamma: float, lam: float
) -> None:
    rng = np.random.default_rng(seed)
    td_error, last = rng.normal(size=n), rng.random(n) < 0.2
    last[-1] = True
    expected = direct_sum(td_error, last, gamma * lam)
    np.testing.assert_allclose(gae(td_error, last, gamma, lam), expected, atol=1e-12)


@pytest.fixture
def steps() -> dict[str, np.ndarray]:
    """Two stretches: the first ends by termination, the second by a time limit."""
    rng = np.random.default_rng(0)
    values = {name: rng.normal(size=7) for name in ("rewards", "values", "next_values")}
    terminated = np.array([0, 0, 1, 0, 0, 0, 0], bool)
    last = terminated | np.array([0, 0, 0, 0, 0, 0, 1], bool)
    return values | {"terminated": terminated, "last": last}


def test_lambda_0_gives_the_td_errors(steps: dict[str, np.ndarray]) -> None:
    r, v, following = steps["rewards"], steps["values"], steps["next_values"]
    expected = r + 0.9 * following - v
    expected[2] = r[2] - v[2]  # nothing follows
    np.testing.assert_allclose(lambda_targets(**steps, gamma=0.9, lam=0.0).adv, expected)


def test_lambda_1_gives_returns_that_bootstrap_at_the_time_limit_only(
    steps: dict[str, np.ndarray],
) -> None:
    r, following = steps["rewards"], steps["next_values"]
    steps["values"][1:3] = following[:2] = [0.5, -0.5]  # values of the same states
    steps["values"][4:] = following[3:6] = [1.0, 2.0, 3.0]
    target = lambda_targets(**steps, gamma=0.9, lam=1.0).target
    for t in range(3):
        assert target[t] == pytest.approx(sum(0.9**k * r[t + k] for k in range(3 - t)))
    for t in range(3, 7):
        rest = 0.9 ** (7 - t) * following[6]
        assert target[t] == pytest.approx(sum(0.9**k * r[t + k] for k in range(7 - t)) + rest)


def test_constant_reward_and_exact_values_leave_nothing() -> None:
    v = np.full(50, 1 / (1 - 0.9))
    none, last = np.zeros(50, bool), np.arange(50) == 49
    made = lambda_targets(np.ones(50), v, v, none, last, 0.9, 0.95)
    np.testing.assert_allclose(made.adv, 0, atol=1e-12)
    np.testing.assert_allclose(made.target, v)


def test_float32_stays_and_nan_after_the_end_is_not_read() -> None:
    one = np.ones(2, np.float32)
    after = np.array([1.0, np.nan], np.float32)
    errors = td_errors(one, one, after, np.array([False, True]))
    assert errors.dtype == np.float32
    np.testing.assert_allclose(errors, [0.99, 0.0], atol=1e-6)
    assert gae(errors, np.array([False, True])).dtype == np.float32


@given(st.integers(0, 1000))
def test_standardized(seed: int) -> None:
    adv = standardized(np.random.default_rng(seed).normal(3, 5, size=20))
    assert adv.mean() == pytest.approx(0, abs=1e-12)
    assert adv.std() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones(3), np.array([True, False, False])), "last step must end a stretch"),
        ((np.ones(3), np.array([True])), r"must have one shape \(n,\)"),
        ((np.ones(1), np.array([True]), 1.1), r"gamma must lie in \[0, 1\]"),
        ((np.ones(1), np.array([True]), 0.9, -0.1), r"lam must lie in \[0, 1\]"),
    ],
)
def test_bad_arguments(arguments: tuple[np.ndarray, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gae(*arguments)

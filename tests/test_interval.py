"""Intervals against textbook values and against their promised coverage."""

from __future__ import annotations

import numpy as np
import pytest

from companion.interval import mean_interval, proportion_interval


def test_t_interval_of_a_known_sample() -> None:
    # Half width t(0.975, 4) s / sqrt(5) with t = 2.776445 from the tables and s = sqrt(2.5).
    estimate = mean_interval([1, 2, 3, 4, 5])
    assert estimate.value == 3
    assert estimate.high - 3 == pytest.approx(2.776445 * np.sqrt(2.5 / 5), rel=1e-6)


def test_wilson_interval_of_a_known_sample() -> None:
    # Wilson's closed form with z = 1.959964.
    z, n, p = 1.959964, 8, 5 / 8
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    estimate = proportion_interval(5, 8)
    assert estimate.low == pytest.approx(centre - half, rel=1e-5)
    assert estimate.high == pytest.approx(centre + half, rel=1e-5)


def test_the_mean_lies_in_95_percent_of_the_intervals() -> None:
    rng = np.random.default_rng(0)
    intervals = [mean_interval(rng.normal(2, 3, size=6)) for _ in range(2000)]
    covered = np.mean([low <= 2 <= high for _, low, high in intervals])
    assert 0.935 < covered < 0.965


@pytest.mark.parametrize("values", [[], [1.0], [1.0, np.nan]])
def test_too_few_or_bad_values_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="values"):
        mean_interval(values)


@pytest.mark.parametrize(("count", "n"), [(3, 2), (-1, 2), (0, 0), (1.5, 2)])
def test_impossible_counts_are_refused(count: float, n: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        proportion_interval(count, n)  # type: ignore[arg-type]

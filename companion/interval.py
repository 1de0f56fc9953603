"""Means and proportions over seeds, with 95 % confidence intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from companion import validation

LEVEL = 0.95


class Estimate(NamedTuple):
    """An estimate and the ends of its 95 % interval, in the unit of the values."""

    value: float
    low: float
    high: float


def mean_interval(values: ArrayLike) -> Estimate:
    """Estimate a mean from independent values, one a seed, by Student's t.

    mean +- t_{n-1} s / sqrt(n)

    Args:
        values: (n,) finite numbers, n at least 2.

    Returns:
        Estimate.

    Raises:
        ValueError: fewer than 2 values, or one that is NaN or infinite.

    >>> round(mean_interval([1.0, 2.0, 3.0]).high, 3)
    4.484
    """
    array = validation.finite_array("values", values).ravel()
    if array.size < 2:
        raise ValueError(f"values must hold at least 2 numbers for an interval; got {array.size}")
    half = stats.t.ppf((1 + LEVEL) / 2, array.size - 1) * array.std(ddof=1) / np.sqrt(array.size)
    mean = float(array.mean())
    return Estimate(mean, float(mean - half), float(mean + half))


def proportion_interval(count: int, n: int) -> Estimate:
    """Estimate a probability from `count` successes in n trials by Wilson's score interval.

    Args:
        count: successes, 0 to n.
        n: trials, at least 1.

    Returns:
        Estimate within [0, 1].

    Raises:
        ValueError: n below 1, or count outside 0 to n.

    Reference: Wilson 1927.
    """
    trials = validation.whole("n", n, 1)
    successes = validation.whole("count", count, 0)
    if successes > trials:
        raise ValueError(f"count must be at most n = {trials}; got {count}")
    ends = stats.binomtest(successes, trials).proportion_ci(LEVEL, method="wilson")
    return Estimate(successes / trials, float(ends.low), float(ends.high))

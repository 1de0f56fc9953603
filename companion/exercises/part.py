"""The data model of an automatic part: its cases, what is right, and what is often wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from companion.exercises.own import generator
from companion.policy import FloatArray

Case = Mapping[str, Any]  # the answer's keyword arguments: numbers and nested lists, as in JSON

# Four digits are enough of an answer; single precision gives more.
TOLERANCE = 1e-3
# What a sum that vanishes leaves in double precision.
ROUNDING = 1e-9
# How much further apart than the tolerance right and wrong answers lie in the cases.
MARGIN = 10
# Entries below this share of the largest one are compared on the scale of this share.
SMALLEST_SHARE = 0.01
MOST_DRAWS = 200


@dataclass(frozen=True)
class Misconception:
    """A typical wrong solution, with what to tell whoever hands it in."""

    name: str
    message: str  # what to look at; never the answer
    wrong: Callable[..., ArrayLike]  # what it computes from a case's keyword arguments


@dataclass(frozen=True)
class Part:
    """One automatic part of an exercise: an answer is right if it equals the reference."""

    id: str  # "20-1-a"
    points: int
    title: str
    kind: Literal["function", "numbers"]  # numbers: a variable, compared on the one own case
    name: str  # of the function or variable that the answer cell defines
    cases: Callable[[str, np.random.Generator], list[dict[str, Any]]]  # of a student's id
    reference: Callable[..., ArrayLike]  # what is right for a case's keyword arguments
    misconceptions: tuple[Misconception, ...]

    def draw(self, student: str, secret: str = "") -> list[Case]:
        """Draw a student's cases: the visible ones, or with an instructor's secret the hidden ones.

        Cases that could not tell a misconception from the right answer, or from another
        misconception, are drawn again.

        Raises:
            ValueError: the student's id is no string or empty.
            RuntimeError: no draw told them apart.
        """
        rng = generator(student, "cases", self.id, secret)
        for _ in range(MOST_DRAWS):
            cases = self.cases(student, rng)
            if self.kind == "numbers" or self.tells_apart(cases):
                return list(cases)
        raise RuntimeError(f"{self.id}: no cases of {student!r} tell the misconceptions apart")

    def tells_apart(self, cases: list[dict[str, Any]]) -> bool:
        """Say whether each two of the reference and the misconceptions differ in some case."""
        rules = [self.reference, *(m.wrong for m in self.misconceptions)]
        alike = [*combinations(range(len(rules)), 2)]
        for case in cases:  # most are told apart by the first one
            values = {k: computed(rules[k], case) for k in {k for pair in alike for k in pair}}
            alike = [
                (right, wrong)
                for right, wrong in alike
                if close(values[wrong], values[right], MARGIN * TOLERANCE)
            ]
        return not alike


def arguments(case: Case) -> dict[str, Any]:
    """Return a case's keyword arguments with fresh arrays for lists: float64, or int64 if whole."""
    return {k: np.array(v) if isinstance(v, list) else v for k, v in case.items()}


def computed(rule: Callable[..., ArrayLike], case: Case) -> FloatArray:
    """Return what a reference or a misconception gives for a case; NaN and infinity may occur."""
    with np.errstate(all="ignore"):
        return np.asarray(rule(**arguments(case)), dtype=np.float64)


def close(value: FloatArray, expected: FloatArray, tolerance: float = TOLERANCE) -> bool:
    """Say whether shapes are equal, and all entries up to a relative tolerance; NaN equals NaN.

    >>> close(np.array([1.0, 2.0]), np.array([1.0, 2.0001])), close(np.ones(1), np.ones((1, 1)))
    (True, False)
    >>> close(np.array([1.0, np.nan]), np.array([1.0, np.nan]))
    True
    """
    return value.shape == expected.shape and bool(agree(value, expected, tolerance).all())


def agree(
    value: FloatArray, expected: FloatArray, tolerance: float = TOLERANCE
) -> NDArray[np.bool_]:
    """Say of each entry whether it is close; the shapes are equal."""
    size = np.where(np.isfinite(expected), np.abs(expected), 0.0)
    scale = np.maximum(size, SMALLEST_SHARE * size.max(initial=0.0))
    with np.errstate(invalid="ignore"):
        same = np.abs(value - expected) <= tolerance * scale + ROUNDING
    entries: NDArray[np.bool_] = same | (value == expected) | (np.isnan(value) & np.isnan(expected))
    return entries

"""The checks at the public boundary name the argument, its entry, and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from companion import validation


@pytest.mark.parametrize("value", [0, -1, 2.5, True, math.nan, math.inf, -math.inf])
def test_what_is_not_whole_or_too_small_is_named(value: float) -> None:
    message = f"n must be a whole number of at least 1; got {value!r}"
    with pytest.raises(ValueError, match=message):
        validation.whole("n", value, 1)  # type: ignore[arg-type]
    assert validation.whole("n", 3.0, 1) == 3  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ends", "low_belongs", "high_belongs"), [("[]", True, True), ("[)", True, False), ("()", 0, 0)]
)
def test_the_brackets_say_which_ends_belong_to_an_interval(
    ends: str, low_belongs: bool, high_belongs: bool
) -> None:
    for value, belongs in ((0.0, low_belongs), (0.5, True), (1.0, high_belongs)):
        if belongs:
            assert validation.between("x", value, 0, 1, ends) == value  # type: ignore[arg-type]
        else:
            with pytest.raises(ValueError) as error:  # noqa: PT011
                validation.between("x", value, 0, 1, ends)  # type: ignore[arg-type]
            assert str(error.value) == f"x must lie in {ends[0]}0, 1{ends[1]}; got {value}"


@pytest.mark.parametrize("value", [math.nan, math.inf, -1e-300, [0.5, 2.0], []])
def test_an_interval_refuses_what_is_outside_not_a_number_or_empty(value: float) -> None:
    with pytest.raises(ValueError, match=r"x must lie in \[0, 1\]; got "):
        validation.between("x", value, 0, 1)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: validation.finite_array("x", math.nan), "x must be finite; x is nan"),
        (lambda: validation.finite_array("x", [[0, math.inf]]), "x must be finite; x[0, 1] is inf"),
        (lambda: validation.finite_array("x", []), "x is empty; at least one number is needed"),
        (
            lambda: validation.last_axes("x", np.zeros(2), (3,)),
            "x must have shape (..., 3); got (2,)",
        ),
        (
            lambda: validation.probabilities("x", [2.0]),
            "x must sum to 1 over its last axis; it sums to 2",
        ),
    ],
)
def test_arrays_are_named_with_the_entry(check: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        check()
    assert str(error.value) == message

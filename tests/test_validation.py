"""The checks at the public boundary name the argument, its entry, and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

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
        (
            lambda: validation.finite_array("x", [[0.0, 1.0], [2.0]]),
            "x must be an array of real numbers: setting an array element with a sequence. The"
            " requested array has an inhomogeneous shape after 1 dimensions. The detected shape was"
            " (2,) + inhomogeneous part.",
        ),
        (
            lambda: validation.finite_array("x", "many"),
            "x must be an array of real numbers: its dtype is <U4",
        ),
        (
            lambda: validation.finite_array("x", np.array([1j])),
            "x must be an array of real numbers: its dtype is complex128",
        ),
        (
            lambda: validation.between("x", torch.ones(1, requires_grad=True), 0, 1),
            "x must be an array of real numbers: Can't call numpy() on Tensor that requires grad."
            " Use tensor.detach().numpy() instead.",
        ),
        (
            lambda: validation.probabilities("x", 1.0),
            "x must be rows of probabilities; got the number 1.0",
        ),
        (lambda: validation.whole("x", "3", 1), "x must be one number; got '3'"),  # type: ignore[arg-type]
        (lambda: validation.positive("x", [1.0]), "x must be one number; got [1.0]"),  # type: ignore[arg-type]
        (lambda: validation.non_negative("x", None), "x must be one number; got None"),  # type: ignore[arg-type]
        (lambda: validation.finite_array("x", []), "x is empty; at least one number is needed"),
        (
            lambda: validation.last_axes("x", np.zeros(2), (3,)),
            "x must have shape (..., 3); got (2,)",
        ),
        (
            lambda: validation.probabilities("x", [2.0]),
            "x must sum to 1 over its last axis; it sums to 2, and may be off by 1e-08: divide each"
            " row by its sum",
        ),
    ],
)
def test_arrays_are_named_with_the_entry(check: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        check()
    assert str(error.value) == message


@pytest.mark.parametrize("actions", [3, 100, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_softmax_passes_in_the_dtype_it_was_computed_in(actions: int, dtype: type) -> None:
    logits = 3 * np.random.default_rng(actions).standard_normal((1000, actions))
    rows = torch.from_numpy(logits.astype(dtype)).softmax(-1).numpy()
    assert np.abs(rows.sum(axis=-1, dtype=np.float64) - 1).max() > 1e-8
    checked = validation.probabilities("rows", rows)
    assert checked.dtype == np.float64
    np.testing.assert_allclose(checked.sum(axis=-1), 1, rtol=0, atol=1e-15)
    np.testing.assert_allclose(checked, rows.astype(float), rtol=16 * np.finfo(dtype).eps)


@pytest.mark.parametrize(("dtype", "off"), [(np.float64, 2e-8), (np.float32, 1e-5)])
def test_rows_that_are_off_by_more_than_their_rounding_are_refused(dtype: type, off: float) -> None:
    allowed = "1e-08" if dtype == np.float64 else "2e-06"
    with pytest.raises(ValueError, match=f"x must sum to 1 .* may be off by {allowed}: divide"):
        validation.probabilities("x", np.array([0.5, 0.5 + off], dtype=dtype))
    kept = np.array([0.25, 0.75 + 5e-9])
    assert validation.probabilities("x", kept).tolist() == kept.tolist()

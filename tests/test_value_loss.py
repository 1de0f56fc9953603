"""The clipped value loss: theory, finite differences, autograd, and bad input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from companion.value_loss import clipped_value_derivative, clipped_value_loss
from tests.derivatives import array, autograd, slope

values = st.floats(-3.0, 3.0)
ranges = st.floats(0.01, 1.5)


@given(v=values, v_old=values, target=values, eps=ranges)
def test_value_loss_is_never_below_the_plain_one(
    v: float, v_old: float, target: float, eps: float
) -> None:
    loss = clipped_value_loss(array(v), array(v_old), array(target), eps)[0]
    plain = (v - target) * (v - target)
    assert loss >= plain
    if abs(v - v_old) < 0.999 * eps:
        assert loss == pytest.approx(plain, abs=1e-12)


# v_old 0, eps 0.2, G 1: progress from the band's edge 0.2 to the mirror image 1.8 is ignored.
@pytest.mark.parametrize(
    ("v", "derivative"),
    [(-0.5, -3.0), (0.0, -2.0), (0.1, -1.8), (0.3, 0.0), (1.0, 0.0), (1.7, 0.0), (1.9, 1.8)],
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_value_derivative_by_region(v: float, derivative: float, sign: float) -> None:
    v, target, derivative = sign * v, sign * 1.0, sign * derivative
    closed = clipped_value_derivative(array(v), 0.0, target)[0]
    assert closed == pytest.approx(derivative, abs=1e-12)
    difference = slope(lambda x: clipped_value_loss(x, 0.0, target), v)
    assert difference == pytest.approx(derivative, abs=1e-7)


@given(v=values, v_old=values, target=values, eps=ranges)
def test_value_derivative_equals_differences_and_autograd(
    v: float, v_old: float, target: float, eps: float
) -> None:
    edge = v_old + min(max(v - v_old, -eps), eps)
    # Differences need room around the band's edges and, outside the band, around the tie.
    outside = abs(v - v_old) - eps
    assume(abs(outside) > 1e-5)
    assume(outside < 0 or abs(abs(v - target) - abs(edge - target)) > 1e-5)
    numpy_loss = clipped_value_loss(array(v), v_old, target, eps)
    torch_loss = clipped_value_loss(torch.tensor(array(v)), v_old, target, eps)
    np.testing.assert_array_equal(torch_loss.numpy(), numpy_loss)
    closed = clipped_value_derivative(array(v), v_old, target, eps)[0]

    def loss(x: Any) -> Any:
        return clipped_value_loss(x, v_old, target, eps)

    assert slope(loss, v) == pytest.approx(closed, abs=1e-6)
    assert autograd(loss, array(v))[0] == pytest.approx(closed, abs=1e-12)


def test_value_kinks_are_as_documented() -> None:
    """At the edge (0.25) and its mirror image (1.75) the derivative is 2 (v - G)."""
    kinks = array(0.25, 1.75)
    closed = clipped_value_derivative(kinks, 0.0, 1.0, 0.25)
    assert closed.tolist() == [-1.5, 1.5]
    by_torch = autograd(lambda v: clipped_value_loss(v, 0.0, 1.0, 0.25), kinks)
    assert by_torch.tolist() == [-1.5, 0.75]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clip_range": 0.0}, "clip_range must be"),
        ({"clip_range": math.nan}, "clip_range must be"),
        ({"v": array()}, "v must hold at least one sample"),
        ({"v": array(math.nan)}, "v must be finite"),
        ({"v_old": array(math.inf)}, "v_old must be finite"),
        ({"target": math.nan}, "target must be finite"),
        ({"target": array(1.0, 2.0)}, "target must have v's shape"),
    ],
)
def test_bad_values(change: dict[str, Any], message: str) -> None:
    arguments = {"v": array(1.0), "v_old": array(1.0), "target": array(1.0)} | change
    for f in (clipped_value_loss, clipped_value_derivative):
        with pytest.raises(ValueError, match=message):
            f(**arguments)

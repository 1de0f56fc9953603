"""Checks of input at the public boundary, with errors that say what to change."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

# A row of probabilities typed in as decimals (0.1, 0.2, 0.7) is off by rounding only.
ROW_SUM_TOLERANCE = 1e-8


def positive(name: str, value: float) -> float:
    """Return value as a float, or raise ValueError unless it is finite and above 0."""
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be finite and above 0; got {value!r}")
    return float(value)


def non_negative(name: str, value: float) -> float:
    """Return value as a float, or raise ValueError unless it is finite and at least 0."""
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be finite and at least 0; got {value!r}")
    return float(value)


def whole(name: str, value: int, at_least: int) -> int:
    """Return value as an int, or raise ValueError unless it is whole and large enough."""
    is_whole = not isinstance(value, bool) and math.isfinite(value) and int(value) == value
    if not is_whole or value < at_least:
        raise ValueError(f"{name} must be a whole number of at least {at_least}; got {value!r}")
    return int(value)


def between(
    name: str, value: ArrayLike, low: float, high: float, ends: Literal["[]", "[)", "()"] = "[]"
) -> NDArray[np.float64]:
    """Return value as a float64 array, or raise ValueError unless all of it lies in an interval.

    A round bracket in `ends` leaves out the end of the interval that it stands for.
    """
    array = np.asarray(value, dtype=np.float64)
    above = array >= low if ends[0] == "[" else array > low
    below = array <= high if ends[1] == "]" else array < high
    if array.size == 0 or not (above & below).all():
        raise ValueError(f"{name} must lie in {ends[0]}{low:g}, {high:g}{ends[1]}; got {value!r}")
    return array


def finite_array(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """Return value as a float64 array, or raise ValueError if any entry is NaN or infinite."""
    array = np.asarray(value, dtype=np.float64)
    if array.size == 0:
        raise ValueError(f"{name} is empty; at least one number is needed")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite; {entry(name, where)} is {array[where]}")
    return array


def probabilities(
    name: str, value: ArrayLike, tolerance: float = ROW_SUM_TOLERANCE
) -> NDArray[np.float64]:
    """Return value as float64 rows of probabilities, checked along the last axis."""
    array = finite_array(name, value)
    if (array < 0).any():
        where = tuple(int(i) for i in np.argwhere(array < 0)[0])
        raise ValueError(f"{name} must not be negative; {entry(name, where)} is {array[where]}")
    sums = array.sum(axis=-1)
    off = np.abs(sums - 1) > tolerance
    if off.any():
        where = tuple(int(i) for i in np.argwhere(off)[0])
        raise ValueError(
            f"{entry(name, where)} must sum to 1 over its last axis; it sums to {sums[where]:.10g}"
        )
    return array


def last_axes(name: str, array: NDArray[np.float64], shape: tuple[int, ...]) -> None:
    """Raise ValueError unless the last axes of an array have this shape."""
    if array.shape[-len(shape) :] != shape:
        wanted = ", ".join(map(str, shape))
        raise ValueError(f"{name} must have shape (..., {wanted}); got {array.shape}")


def entry(name: str, where: tuple[int, ...]) -> str:
    """Return how Python writes an entry of an array, or the name alone if it is a number."""
    return f"{name}[{', '.join(map(str, where))}]" if where else name

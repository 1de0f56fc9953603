"""Checks of input at the public boundary, with errors that say what to change."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

# A row of probabilities typed in as decimals (0.1, 0.2, 0.7) is off by rounding only.
ROW_SUM_TOLERANCE = 1e-8
# The sum of a softmax that was computed in float32 is off by up to 3e-7 at 1,000 actions.
ROUNDINGS = 16  # units of the given dtype's last place


def positive(name: str, value: float) -> float:
    """Return value as a float, or raise ValueError unless it is finite and above 0."""
    if not (is_finite(name, value) and value > 0):
        raise ValueError(f"{name} must be finite and above 0; got {value!r}")
    return float(value)


def non_negative(name: str, value: float) -> float:
    """Return value as a float, or raise ValueError unless it is finite and at least 0."""
    if not (is_finite(name, value) and value >= 0):
        raise ValueError(f"{name} must be finite and at least 0; got {value!r}")
    return float(value)


def whole(name: str, value: int, at_least: int) -> int:
    """Return value as an int, or raise ValueError unless it is whole and large enough."""
    is_whole = not isinstance(value, bool) and is_finite(name, value) and int(value) == value
    if not is_whole or value < at_least:
        raise ValueError(f"{name} must be a whole number of at least {at_least}; got {value!r}")
    return int(value)


def between(
    name: str, value: ArrayLike, low: float, high: float, ends: Literal["[]", "[)", "()"] = "[]"
) -> NDArray[np.float64]:
    """Return value as a float64 array, or raise ValueError unless all of it lies in an interval.

    A round bracket in `ends` leaves out the end of the interval that it stands for.
    """
    array = numbers(name, value)
    above = array >= low if ends[0] == "[" else array > low
    below = array <= high if ends[1] == "]" else array < high
    if array.size == 0 or not (above & below).all():
        raise ValueError(f"{name} must lie in {ends[0]}{low:g}, {high:g}{ends[1]}; got {value!r}")
    return array


def number_between(
    name: str, value: float, low: float, high: float, ends: Literal["[]", "[)", "()"] = "[]"
) -> float:
    """Return value as a float, or raise ValueError unless it is one number in an interval."""
    array = between(name, value, low, high, ends)
    if array.ndim:
        raise ValueError(f"{name} must be one number; got {value!r}")
    return float(array)


def broadcastable(**shapes: tuple[int, ...]) -> None:
    """Raise ValueError unless shapes of that many arguments, by name, broadcast."""
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:
        each = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"{' and '.join(shapes)} must have axes that broadcast; {each}") from None


def generator(rng: np.random.Generator) -> np.random.Generator:
    """Return a source of random numbers, or raise ValueError if it is none, such as a seed."""
    if not isinstance(rng, np.random.Generator):
        raise ValueError(
            f"rng must be a NumPy generator, such as np.random.default_rng(0); got {rng!r}"
        )
    return rng


def numbers(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """Return value as a float64 array, or raise ValueError if it is no array of real numbers."""
    try:
        array = np.asarray(value)
        if array.dtype.kind in "cSU":  # NumPy would drop an imaginary part, and read digits
            raise TypeError(f"its dtype is {array.dtype}")
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, RuntimeError) as error:
        # RuntimeError is PyTorch's, of a tensor that still has its graph; it says what to call.
        raise ValueError(f"{name} must be an array of real numbers: {error}") from None


def finite_array(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """Return value as a float64 array, or raise ValueError if any entry is NaN or infinite."""
    array = numbers(name, value)
    if array.size == 0:
        raise ValueError(f"{name} is empty; at least one number is needed")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite; {entry(name, where)} is {array[where]}")
    return array


def probabilities(
    name: str, value: ArrayLike, tolerance: float | None = None
) -> NDArray[np.float64]:
    """Return value as float64 rows of probabilities, checked along the last axis.

    By default rows may be off 1 by the rounding of the dtype in which they were given. Rows of a
    dtype coarser than float64 are divided by their sums, so that exact identities hold for them.
    """
    array = finite_array(name, value)
    if array.ndim == 0:
        raise ValueError(f"{name} must be rows of probabilities; got the number {array}")
    unit = _unit(value)
    if tolerance is None:
        tolerance = max(ROW_SUM_TOLERANCE, ROUNDINGS * unit)
    if (array < 0).any():
        where = tuple(int(i) for i in np.argwhere(array < 0)[0])
        raise ValueError(f"{name} must not be negative; {entry(name, where)} is {array[where]}")
    sums = array.sum(axis=-1)
    off = np.abs(sums - 1) > tolerance
    if off.any():
        where = tuple(int(i) for i in np.argwhere(off)[0])
        raise ValueError(
            f"{entry(name, where)} must sum to 1 over its last axis; it sums to {sums[where]:.10g},"
            f" and may be off by {tolerance:.1g}: divide each row by its sum"
        )
    return array / sums[..., None] if unit > np.finfo(np.float64).eps else array


def last_axes(name: str, array: NDArray[np.float64], shape: tuple[int, ...]) -> None:
    """Raise ValueError unless the last axes of an array have this shape."""
    if array.shape[-len(shape) :] != shape:
        wanted = ", ".join(map(str, shape))
        raise ValueError(f"{name} must have shape (..., {wanted}); got {array.shape}")


def entry(name: str, where: tuple[int, ...]) -> str:
    """Return how Python writes an entry of an array, or the name alone if it is a number."""
    return f"{name}[{', '.join(map(str, where))}]" if where else name


def is_finite(name: str, value: float) -> bool:
    """Say whether a number is finite, or raise ValueError if value is not one number."""
    try:
        return math.isfinite(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise ValueError(f"{name} must be one number; got {value!r}") from None


def _unit(value: ArrayLike) -> float:
    """Return the gap between 1 and the next number of the dtype, 0 for whole numbers."""
    dtype = np.asarray(value).dtype
    return float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0

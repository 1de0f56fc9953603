"""What an answer may return, as plain numbers and lists of floats."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

MOST_NUMBERS = 10_000
DEEPEST = 4
SCALARS = frozenset(np.sctypeDict.values()) - {np.bool_}


class NotPlain(TypeError):
    """An answer is no number and no rectangular list of numbers; says what it is."""


def plain(value: object) -> Any:
    """Turn a number or an array of any library into a float or nested lists of floats.

    The types are exact: a subclass could redefine what it equals.

    Args:
        value: int, float, NumPy scalar or array, torch tensor, or lists and tuples of these.

    Returns:
        float, or lists of floats, rectangular; NaN and infinity pass.

    Raises:
        NotPlain: any other type, rows of different length, or more than 10,000 numbers.

    >>> plain((np.float32(0.5), np.array(1), 2))
    [0.5, 1.0, 2.0]
    """
    result = _plain(value, 0)
    if _size(result) > MOST_NUMBERS:
        raise NotPlain(f"more than {MOST_NUMBERS:,} numbers")
    return result


def _plain(value: Any, depth: int) -> Any:
    # By identity: the class of a class could redefine what `==`, and so `in`, says of it.
    kind = type(value)
    if kind is float or kind is int:
        return _number(value)
    if kind is np.ndarray or any(kind is scalar for scalar in SCALARS):
        return _from_array(value)
    torch = sys.modules.get("torch")  # a tensor exists only where torch has been imported
    if torch is not None and (kind is torch.Tensor or kind is torch.nn.Parameter):
        return _plain(value.detach().tolist(), depth)
    if kind is not list and kind is not tuple:
        raise NotPlain(f"{_named(kind)} where a number or an array of numbers is expected")
    if depth == DEEPEST or len(value) > MOST_NUMBERS:
        raise NotPlain(f"lists more than {DEEPEST} deep or {MOST_NUMBERS:,} long")
    rows = [_plain(entry, depth + 1) for entry in value]
    if len({_shape(row) for row in rows}) > 1:
        raise NotPlain("rows of different length, or numbers beside lists")
    return rows


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise NotPlain("a whole number too large for a float") from None


def _from_array(value: Any) -> Any:
    if value.dtype.kind not in "fiu":
        raise NotPlain(f"an array of {value.dtype} where real numbers are expected")
    if value.size > MOST_NUMBERS or value.ndim > DEEPEST:
        raise NotPlain(f"an array of shape {value.shape}")
    return value.astype(np.float64).tolist()


def _named(kind: type) -> str:
    return "a truth value" if kind is bool else f"an object of type {kind.__name__}"


def _shape(value: Any) -> tuple[int, ...]:
    """Return the shape of nested lists that are rectangular."""
    return () if type(value) is float else (len(value), *(_shape(value[0]) if value else ()))


def _size(value: Any) -> int:
    return int(np.prod(_shape(value)))

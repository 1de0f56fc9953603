"""Conjugate gradient, written out: A x = b from products with A alone, for NumPy and torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from companion import validation

if TYPE_CHECKING:
    from torch import Tensor

Vector = TypeVar("Vector", "Tensor", npt.NDArray[np.float64])


def conjugate_gradient_iterates(
    matvec: Callable[[Vector], Vector], b: Vector, iterations: int = 10, tolerance: float = 1e-10
) -> Iterator[Vector]:
    """Yield the iterates x_1, x_2, ... of conjugate gradient for A x = b, from x_0 = 0.

    x_j = argmin of x^T A x / 2 - b^T x over span{b, A b, ..., A^(j-1) b}  (chapter, section 4)

    Args:
        matvec: the function v -> A v, for a symmetric positive definite A.
        b: right side, a NumPy array or torch tensor of shape (P,).
        iterations: most steps to take, at least 1.
        tolerance: stop once the residual's norm is at most this times that of b.

    Yields:
        One new vector for each step; none if b is zero.

    Raises:
        ValueError: b is not a finite vector, or A is not positive definite on the way.

    Reference: Nocedal and Wright 2006, algorithm 5.2.

    >>> A, b = np.diag([1.0, 4.0]), np.array([1.0, 2.0])
    >>> [x.round(3).tolist() for x in conjugate_gradient_iterates(lambda v: A @ v, b)]
    [[0.294, 0.588], [1.0, 0.5]]
    """
    if b.ndim != 1:
        raise ValueError(f"b must be a vector; got shape {tuple(b.shape)}")
    x, residual, search = 0.0 * b, b, b
    squared = first = float(b @ b)
    if not math.isfinite(first):
        raise ValueError("b must be finite; it holds NaN, infinite or overflowing entries")
    validation.whole("iterations", iterations, at_least=1)
    validation.non_negative("tolerance", tolerance)
    for _ in range(iterations):
        if squared <= tolerance**2 * first:
            return
        product = matvec(search)
        rate = squared / _curvature(search, product)
        x = x + rate * search
        residual = residual - rate * product
        squared, previous = float(residual @ residual), squared
        search = residual + (squared / previous) * search
        yield x


def conjugate_gradient(
    matvec: Callable[[Vector], Vector], b: Vector, iterations: int = 10, tolerance: float = 1e-10
) -> Vector:
    """Return the last iterate of conjugate gradient for A x = b (zero if b is zero).

    Arguments, errors and reference: those of conjugate_gradient_iterates.

    >>> conjugate_gradient(lambda v: np.array([1.0, 4.0]) * v, np.array([1.0, 2.0]))
    array([1. , 0.5])
    """
    x = 0.0 * b
    for x in conjugate_gradient_iterates(matvec, b, iterations, tolerance):  # noqa: B007
        pass
    return x


def cg_error_bound(condition_number: float, j: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the bound on the relative error of conjugate gradient after j steps.

    |x_j - x*|_A / |x_0 - x*|_A <= 2 ((sqrt(k) - 1) / (sqrt(k) + 1))^j  (chapter, section 4)

    Args:
        condition_number: k, the largest over the smallest eigenvalue of A, at least 1.
        j: numbers of steps, any shape, at least 0.

    Returns:
        The bound, the shape of j. It holds in the norm sqrt(x^T A x), not in the Euclidean one.

    Raises:
        ValueError: condition_number is not finite or below 1; a j is not finite or below 0.

    Reference: Nocedal and Wright 2006, equation 5.36.

    >>> cg_error_bound(9.0, [0, 1, 2])
    array([2. , 1. , 0.5])
    """
    if not 1 <= condition_number < math.inf:
        raise ValueError(
            f"condition_number must be finite and at least 1; got {condition_number!r}"
        )
    steps = validation.between("j", j, 0.0, math.inf, "[)")
    root = math.sqrt(condition_number)
    return np.asarray(2.0 * ((root - 1.0) / (root + 1.0)) ** steps)


def _curvature(v: Vector, product: Vector) -> float:
    """Return v . A v for product = A v, or raise ValueError unless it is finite and positive."""
    value = float(v @ product)
    if not 0.0 < value < math.inf:
        raise ValueError(
            f"matvec must be that of a positive definite matrix; v . A v is {value} "
            "(for a Fisher matrix, raise damping)"
        )
    return value

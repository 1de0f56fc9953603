"""Conjugate gradient against exact solutions, its own theory, and bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from companion.conjugate_gradient import (
    cg_error_bound,
    conjugate_gradient,
    conjugate_gradient_iterates,
)

SEEDS = st.integers(0, 2**31 - 1)
Array = NDArray[np.float64]


def _symmetric(eigenvalues: Array, rng: np.random.Generator) -> Array:
    basis = np.linalg.qr(rng.normal(size=(len(eigenvalues), len(eigenvalues))))[0]
    return np.asarray(basis * eigenvalues @ basis.T)


@given(seed=SEEDS, distinct=st.integers(1, 5), size=st.integers(5, 30))
@settings(max_examples=40, deadline=None)
def test_exact_after_as_many_steps_as_distinct_eigenvalues(
    seed: int, distinct: int, size: int
) -> None:
    rng = np.random.default_rng(seed)
    levels = np.linspace(1.0, 10.0, distinct)
    A, b = _symmetric(levels[np.arange(size) % distinct], rng), rng.normal(size=size)
    exact = np.linalg.solve(A, b)
    x = conjugate_gradient(lambda v: A @ v, b, iterations=distinct)
    assert np.linalg.norm(x - exact) <= 1e-10 * np.linalg.norm(exact)
    # Further steps are not taken: the tolerance ends the iteration before rounding is divided by.
    assert len(list(conjugate_gradient_iterates(lambda v: A @ v, b, 100))) <= distinct + 1


@given(seed=SEEDS, condition_number=st.floats(1.5, 1e4))
@settings(max_examples=40, deadline=None)
def test_error_falls_and_stays_under_its_bound(seed: int, condition_number: float) -> None:
    """TRPO-4, in the norm of A."""
    rng = np.random.default_rng(seed)
    inside = np.exp(rng.uniform(0.0, math.log(condition_number), 28))
    A, b = _symmetric(np.array([1.0, condition_number, *inside]), rng), rng.normal(size=30)
    exact = np.linalg.solve(A, b)
    errors = [
        math.sqrt((x - exact) @ A @ (x - exact)) / math.sqrt(exact @ A @ exact)
        for x in conjugate_gradient_iterates(lambda v: A @ v, b, 10)
    ]
    bounds = cg_error_bound(condition_number, np.arange(1, len(errors) + 1))
    assert (errors <= bounds + 1e-9).all()
    assert (np.diff([1.0, *errors]) < 0.0).all()


@given(seed=SEEDS)
@settings(max_examples=20, deadline=None)
def test_residual_is_orthogonal_to_the_solution(seed: int) -> None:
    """So that d . F d = g . d, which saves trpo_step one product."""
    rng = np.random.default_rng(seed)
    A, b = _symmetric(np.geomspace(0.1, 1.0, 40), rng), rng.normal(size=40)
    for x in conjugate_gradient_iterates(lambda v: A @ v, b, 10):
        assert x @ A @ x == pytest.approx(b @ x, rel=1e-10)


def test_singular_matrix_with_b_in_its_range_gives_the_shortest_solution() -> None:
    rng = np.random.default_rng(0)
    A = _symmetric(np.array([0.0, 0.0, 1.0, 2.0, 3.0]), rng)
    b = A @ rng.normal(size=5)
    x = conjugate_gradient(lambda v: A @ v, b)
    np.testing.assert_allclose(x, np.linalg.pinv(A, rcond=1e-10) @ b, rtol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_and_numpy_run_the_same_iteration(dtype: torch.dtype) -> None:
    rng = np.random.default_rng(0)
    A, b = _symmetric(np.linspace(1.0, 5.0, 8), rng), rng.normal(size=8)
    matrix = torch.tensor(A, dtype=dtype)
    ours = conjugate_gradient_iterates(lambda v: matrix @ v, torch.tensor(b, dtype=dtype), 5)
    for x, y in zip(ours, conjugate_gradient_iterates(lambda v: A @ v, b, 5), strict=True):
        assert x.dtype == dtype
        np.testing.assert_allclose(x.numpy(), y, rtol=1e-4)


def test_zero_right_side_has_the_zero_solution_without_a_product() -> None:
    def never(v: Array) -> Array:
        raise AssertionError("a product was formed")

    assert (conjugate_gradient(never, np.zeros(3)) == 0.0).all()
    assert list(conjugate_gradient_iterates(never, np.zeros(3))) == []


@pytest.mark.parametrize("eigenvalue", [-1.0, 0.0, math.nan, math.inf])
def test_matrix_that_is_not_positive_definite(eigenvalue: float) -> None:
    with pytest.raises(ValueError, match=r"positive definite.*raise damping"):
        conjugate_gradient(lambda v: eigenvalue * v, np.ones(2))


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="b must be finite"):
        conjugate_gradient(lambda v: v, np.array([1.0, math.nan]))
    with pytest.raises(ValueError, match="b must be finite"):
        conjugate_gradient(lambda v: v, torch.tensor([math.inf]))
    with pytest.raises(ValueError, match=r"b must be a vector; got shape \(2, 2\)"):
        conjugate_gradient(lambda v: v, np.eye(2))
    with pytest.raises(ValueError, match="iterations must be a whole number of at least 1; got 0"):
        conjugate_gradient(lambda v: v, np.ones(2), iterations=0)
    with pytest.raises(ValueError, match="tolerance must be finite and at least 0"):
        conjugate_gradient(lambda v: v, np.ones(2), tolerance=-1.0)
    with pytest.raises(
        ValueError, match=r"condition_number must be finite and at least 1; got 0.5"
    ):
        cg_error_bound(0.5, 1)
    for j in (-1, [1, -2], math.nan, math.inf):
        with pytest.raises(ValueError, match=r"j must lie in \[0, inf\); got "):
            cg_error_bound(4.0, j)


def test_bound_in_closed_form() -> None:
    assert cg_error_bound(1.0, 3) == 0.0
    np.testing.assert_allclose(cg_error_bound(4.0, [1, 2, 3]), [2 / 3, 2 / 9, 2 / 27])

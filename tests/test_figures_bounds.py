"""What the figures of section 03 show, against closed forms and inequalities."""

from __future__ import annotations

import numpy as np
import pytest

from companion.bounds import cpi_terms, largest_steps, upper_bounds
from companion.figures.bounds import EXAMPLES, draw_bounds, line_to_target
from companion.figures.looseness import draw_looseness
from companion.improvement import performance_difference
from companion.mdp import evaluate, one_way_street
from companion.policy import mixture

STAY = np.array([[1.0, 0.0], [1.0, 0.0]])
TURN = 1 - STAY


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99, 0.999])
def test_kakade_and_langfords_bound_is_attained_in_the_one_way_street(gamma: float) -> None:
    street, alpha = one_way_street(gamma), np.geomspace(1e-6, 1, 30)
    along = mixture(STAY, TURN, alpha)
    apart = 1 - gamma * (1 - alpha)
    rho = np.stack([1 / apart, 1 / (1 - gamma) - 1 / apart], axis=-1)
    np.testing.assert_allclose(evaluate(street, along).rho, rho, rtol=1e-9)
    G, e = 1 / (1 - gamma), 1.0
    bound = alpha * G - 2 * alpha**2 * gamma * e / ((1 - gamma) * apart)
    gain = performance_difference(street, STAY, along).gain
    np.testing.assert_allclose(gain, bound, atol=1e-11 * G)
    assert cpi_terms(street, STAY, TURN) == pytest.approx((G, 2 * gamma * e / (1 - gamma) ** 2))
    steps = largest_steps(street, STAY, TURN)
    assert steps == pytest.approx(((1 - gamma) / (2 * gamma), 0, (1 - gamma) / gamma), rel=1e-6)


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("alpha", [1e-3, 0.1, 0.9])
def test_each_stage_of_the_derivation_is_above_the_one_before(example: str, alpha: float) -> None:
    for gamma in (0.5, 0.9, 0.999):
        error, *bounds, kl = upper_bounds(*line_to_target(example, gamma), alpha)
        stages = np.array([error, *bounds])
        assert (stages[1:] >= stages[:-1] * (1 - 1e-9)).all()
        assert kl >= error


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_numbers_beside_the_bounds_are_in_order(example: str) -> None:
    numbers = draw_bounds(alpha=0.01, gamma=0.9, example=example).numbers
    promised, gained, cpi, kl, best, by_cpi, by_kl, safe = map(float, numbers.values())
    assert max(cpi, kl) <= gained
    assert best == pytest.approx(by_cpi / 2)
    assert max(by_cpi, by_kl) <= safe
    assert promised > 0


def test_the_bounds_leave_the_picture_where_they_should() -> None:
    drawing = draw_bounds(alpha=1.0, gamma=0.9, example="random")
    assert drawing.numbers["KL bound on it"] == -np.inf
    left, right = drawing.figure.axes
    for ax in (left, right):
        curves = {line.get_label(): line.get_ydata() for line in ax.lines}
        assert np.isnan(curves["KL bound"][-1])
        assert (curves["return J"] >= curves["CPI bound"]).all()
    np.testing.assert_allclose(right.lines[1].get_ydata(), 1, rtol=1e-9)


def test_looseness_of_the_street_is_two_at_every_horizon() -> None:
    numbers = draw_looseness(alpha=0.01, example="one-way street").numbers
    for horizon in ("2", "1,000"):
        assert numbers[f"certified / safe, CPI, horizon {horizon}"] == pytest.approx(0.5)
        assert numbers[f"certified / safe, KL, horizon {horizon}"] == 0
    assert numbers["walkers never meet again / error, horizon 1,000"] == pytest.approx(1)
    # first form to parabola: (1 - gamma (1 - alpha)) / (1 - gamma)
    assert numbers["CPI bound / error, horizon 1,000"] == pytest.approx(1 + 999 * 0.01)


def test_an_unknown_example_is_named() -> None:
    with pytest.raises(ValueError, match=r"example must be one of .*; got 'maze'"):
        draw_bounds(alpha=0.1, gamma=0.9, example="maze")

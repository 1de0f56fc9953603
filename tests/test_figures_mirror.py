"""What the figures of section 07 show beside the picture, against closed forms and the table."""

from __future__ import annotations

import numpy as np
import pytest

from companion.figures.greek import ETA
from companion.figures.mirror import OLD, Q, draw_gaps, draw_regularized, draw_step
from companion.show import printed


def test_the_step_shows_the_log_normalizer() -> None:
    """At the maximum eta <p - pi, q> - KL = log Z - eta <pi, q>."""
    for eta in (0.1, 1.0, 10.0):
        shown = draw_step(eta).numbers[f"{ETA} gain - KL, never negative"]
        log_z = np.log((OLD * np.exp(eta * Q)).sum()) - eta * (OLD * Q).sum()
        assert shown == pytest.approx(log_z, rel=1e-9)


def test_the_best_action_takes_over_where_the_odds_are_even() -> None:
    """Its odds of 1/12 against the first action are multiplied by exp(eta)."""
    heights = [patch.get_height() for patch in draw_step(np.log(12)).figure.axes[0].patches]
    assert heights[7] == pytest.approx(heights[4])


def test_the_gaps_are_the_printed_ones() -> None:
    numbers = draw_gaps(eta=1.0, logit=8.0, steps="constant").numbers
    chapter = {(row["method"], row["start"]): row["gap"] for row in printed("mirror")["rows"]}
    for start in ("uniform", "poor"):
        for name, row in (
            ("policy gradient", "policy gradient, eta 1"),
            ("natural PG", "natural PG, eta 1"),
            ("policy iteration", "policy iteration"),
        ):
            shown = str(numbers[f"{name}, {start}: gap at k = 1, 10, 100, 1000"]).split("  ")
            assert shown == [chapter[row, start][i] for i in (0, 2, 4, 5)]


@pytest.mark.parametrize("logit", [0.0, 8.0, 12.0])
@pytest.mark.parametrize("eta", [0.01, 1.0, 100.0])
def test_the_gaps_keep_the_bound_and_the_steps_agree(eta: float, logit: float) -> None:
    numbers = draw_gaps(eta=eta, logit=logit, steps="constant").numbers
    for start in ("uniform", "poor"):
        assert float(numbers[f"natural PG, {start}: largest gap / bound"]) <= 1
        assert float(numbers[f"{start}: |natural step - mirror step|"]) < 1e-9


def test_a_logit_of_0_makes_the_poor_start_uniform() -> None:
    numbers = draw_gaps(eta=1.0, logit=0.0, steps="constant").numbers
    for name in ("policy gradient", "natural PG", "policy iteration"):
        poor = numbers[f"{name}, poor: gap at k = 1, 10, 100, 1000"]
        assert poor == numbers[f"{name}, uniform: gap at k = 1, 10, 100, 1000"]


def test_growing_steps_show_no_bound_of_constant_ones() -> None:
    drawing = draw_gaps(eta=1.0, logit=8.0, steps="growing")
    assert not any("bound" in name for name in drawing.numbers)
    assert str(drawing.numbers["natural PG, poor: gap at k = 1, 10, 100, 1000"]).endswith("1e-12")


@pytest.mark.parametrize(("tau", "keep"), [(0.1, 0.5), (0.01, 0.9), (1.0, 0.7)])
def test_the_late_factor_is_the_power_of_the_old_policy(tau: float, keep: float) -> None:
    numbers = draw_regularized(tau, keep).numbers
    for n in (5, 20, 80):
        assert float(numbers[f"{n} states: measured factor, late"]) == pytest.approx(keep, rel=2e-3)


def test_too_few_updates_are_said_to_be_too_few() -> None:
    numbers = draw_regularized(tau=0.1, keep=0.0).numbers  # quadratic: past 1e-8 in a few updates
    assert numbers["5 states: measured factor, late"] == "too few updates"

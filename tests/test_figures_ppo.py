"""The figures of section 08 against the lines that the chapter prints of its sixteen agents."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.stats import binomtest

from companion.ablation_records import WIDTHS, recorded
from companion.figures.ablation import RUNS, draw_within
from companion.figures.diagnosis import draw_diagnosis
from companion.figures.staleness import STALENESS
from companion.figures.width import draw_width
from companion.show import printed

TORCH = printed("ablation")["torch"]
SEEDS = range(8)


def test_staleness_shows_the_printed_effective_sample_sizes() -> None:
    drawing = STALENESS.draw(**STALENESS.defaults())
    left, right = drawing.figure.axes
    for line, (name, share) in enumerate(TORCH["ess_after_20_epochs"].items()):
        assert str(drawing.numbers[name]).startswith(f"ESS {share}")
        assert f"{left.lines[2 * line].get_ydata()[20]:.0%}" == share
        # Every sample is in one bin of the histogram, of two corners.
        assert sum(right.lines[line].get_ydata()) == 2 * TORCH["batch_steps"]


def test_within_a_batch_the_means_are_the_printed_ones() -> None:
    curves = []
    for update in range(1, 61):
        axes = draw_within(update).figure.axes
        thick = [[x.get_ydata() for x in ax.lines if x.get_linewidth() == 2] for ax in axes]
        curves.append(thick)
    _, outside, entropy = np.moveaxis(curves, 0, 2)  # each (clipped and not, update, epoch)
    for k, name in enumerate(("clipped", "no clip")):
        assert f"{outside[k].mean():.1%}" == TORCH["outside_band_all_epochs"][name]
        assert f"{outside[k, :, -1].mean():.1%}" == TORCH["outside_band_last_epoch"][name]
    assert f"{entropy[0, :5].mean():.2f}" == TORCH["entropy_first_five"]
    assert f"{entropy[0, -5:].mean():.2f}" == TORCH["entropy_last_five"]


def test_the_diagnosis_of_all_seeds_is_the_printed_one() -> None:
    drawings = [draw_diagnosis(seed, seed) for seed in SEEDS]
    dead = {
        name: [seed for seed in SEEDS if str(drawings[seed].numbers[name]).startswith("dead")]
        for name in ("clipped", "no clip")
    }
    assert dead == {"clipped": [], "no clip": TORCH["unclipped_dead_seeds"]}
    for line, name in enumerate(("clipped", "no clip")):
        outside = [drawing.figure.axes[3].lines[line].get_ydata() for drawing in drawings]
        assert f"{np.mean(outside):.1%}" == TORCH["outside_band_last_epoch"][name]


@pytest.mark.parametrize("lr", [1e-2, 3.16228e-2])
def test_the_agents_that_end_below_100_are_drawn_as_dead(lr: float) -> None:
    drawing = RUNS.draw(**(RUNS.defaults() | {"lr": lr}))
    for ax, name in zip(drawing.figure.axes, ("clipped", "no clip"), strict=True):
        curves = [line for line in ax.lines if len(line.get_xdata()) == 60]
        dead = [line for line in curves if np.mean(line.get_ydata()[-10:]) < 100]
        assert len(curves) == 8
        assert {line for line in curves if line.get_linestyle() == "--"} == set(dead)
        assert int(re.match(r"\d", str(drawing.numbers[f"{name}: dead"])).group()) == len(dead)  # type: ignore[union-attr]


def test_the_widths_have_wilsons_intervals_and_the_means_over_seeds() -> None:
    rates, returns = draw_width().figure.axes
    bars = rates.collections[0].get_segments()
    for width, bar, mean in zip(WIDTHS, bars, returns.lines[0].get_ydata(), strict=True):
        records = recorded(width)
        ends = binomtest(int(records.dead.sum()), len(records.dead)).proportion_ci(method="wilson")
        assert bar[:, 1] == pytest.approx([ends.low, ends.high], abs=1e-9)
        assert mean == pytest.approx(records.returns.mean(dtype=float), rel=1e-5)

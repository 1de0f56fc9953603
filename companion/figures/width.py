"""Section 08: how often agents die, by the width of the band."""

from __future__ import annotations

import numpy as np

from companion.ablation_records import WIDTHS, recorded
from companion.drawing import Drawing
from companion.figures.greek import EPSILON
from companion.figures.style import BLUE, ORANGE, panels
from companion.interval import mean_interval, proportion_interval


def draw_width() -> Drawing:
    """Draw dead rate and return after 60 updates of twenty epochs against the clip range."""
    figure, (left, right) = panels(2, height=2.9)
    records = [recorded(width) for width in WIDTHS]
    rates = [proportion_interval(int(one.dead.sum()), len(one.dead)) for one in records]
    returns = [mean_interval(one.returns.mean(axis=1)) for one in records]
    for ax, estimates, color in ((left, rates, ORANGE), (right, returns, BLUE)):
        value, low, high = np.array(estimates).T
        ax.errorbar(WIDTHS, value, (value - low, high - value), fmt="o-", color=color, markersize=4)
        ax.set(xscale="log", xlabel=f"clip range {EPSILON} (log)", xlim=(0.01, 2e6))
    left.set(ylabel="share of agents dead", ylim=(-0.03, 0.8))
    right.set(ylabel="mean return, all updates", ylim=(0, 500))
    parts = (
        f"{width:g}: {rate.value:.2f} dead, return {mean.value:.0f}"
        for width, rate, mean in zip(WIDTHS, rates, returns, strict=True)
    )
    alt = (
        "Share of dead agents, and return over all 60 updates, against the clip range, at least"
        f" {min(len(one.dead) for one in records)} agents each, with 95 % intervals."
        f" {'; '.join(parts)}."
    )
    return Drawing(figure, {}, alt)

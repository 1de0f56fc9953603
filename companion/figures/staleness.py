"""Section 08: how stale a batch is after some steps on it, by its ratios."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from companion.ablation import AblationSettings
from companion.ablation_lines import STALENESS_SEED, stale_ratios
from companion.drawing import Drawing, LiveFigure, Slider
from companion.figures.greek import EPSILON
from companion.figures.style import BLUE, INK, KEPT, ORANGE, panels, rung
from companion.sampling import effective_sample_share

MOST = 40  # epochs
EDGES = np.arange(0.0, 2.45, 0.1)  # of the histogram's bins, in units of the ratio


def draw_staleness(clip_range: float, epochs: int) -> Drawing:
    """Draw the effective sample size after each step on a first batch, and the ratios after some.

    Args:
        clip_range: half-width of the clip, > 0.
        epochs: steps after which the ratios are shown, 1 to 40.
    """
    figure, (left, right) = panels(2, height=2.9)
    numbers: dict[str, float | str] = {}
    looks = {"clipped": (clip_range, BLUE, "-"), "no clip": (None, ORANGE, "--")}
    for name, (clip, color, line) in looks.items():
        ratios = _ratios(clip)
        share = [1.0, *map(effective_sample_share, ratios)]
        left.plot(share, line, color=color, label=name)
        left.plot(epochs, share[epochs], "o", color=color, markersize=5)
        r = ratios[epochs - 1]
        _histogram(right, r, color, line)
        outside = np.mean(np.abs(r - 1) > clip_range)
        numbers[name] = (
            f"ESS {share[epochs]:.0%}, outside the band {outside:.0%},"
            f" ratios from {r.min():.2f} to {r.max():.2f}"
        )
    left.set(xlabel="steps taken on the batch", ylabel="effective sample size / n")
    left.set(ylim=(0.3, 1.03), xlim=(-1, MOST + 1))
    for edge in (1 - clip_range, 1 + clip_range):
        right.axvline(edge, color=INK, linewidth=0.8, linestyle=":")
    right.set(xlabel="ratio", ylabel="samples", xlim=(-0.02, EDGES[-1]))
    right.set_ylim(0, max(100.0, rung(right.dataLim.ymax)))
    left.legend(frameon=False, fontsize=8, loc="lower left")
    alt = (
        f"Left: effective sample size after each of {MOST} steps on one first batch of"
        f" {len(r)} samples. Right: histogram of the ratios after step {epochs}, with the band"
        f" [{1 - clip_range:.2f}, {1 + clip_range:.2f}] dotted. Clipped: {numbers['clipped']}."
        f" Without the clip: {numbers['no clip']}."
    )
    return Drawing(figure, numbers, alt)


@lru_cache(KEPT)
def _ratios(clip_range: float | None) -> NDArray[np.float32]:
    return stale_ratios(AblationSettings(STALENESS_SEED, clip_range, epochs=MOST))


def _histogram(ax: Any, r: NDArray[np.float32], color: str, line: str) -> None:
    counts, _ = np.histogram(r.clip(EDGES[0], EDGES[-1]), EDGES)
    ax.plot(np.repeat(EDGES, 2), [0, *np.repeat(counts, 2), 0], line, color=color, linewidth=1.3)


STALENESS = LiveFigure(
    draw_staleness,
    {
        "clip_range": Slider(EPSILON, "clip range", 0.2, 0.05, 0.8, 0.30103, log=True),
        "epochs": Slider("K", "steps on the batch", 20, 1, MOST, 1, whole=True),
    },
)

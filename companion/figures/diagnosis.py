"""Section 08: is my run broken? A healthy and a saturated agent by their diagnostics."""

from __future__ import annotations

from typing import Any

import numpy as np

from companion.ablation import LAST, AblationRun
from companion.ablation_records import reference
from companion.drawing import Drawing, LiveFigure, Slider
from companion.figures.style import BLUE, ORANGE, panels, shared_legend


def draw_diagnosis(clipped: int, unclipped: int) -> Drawing:
    """Draw return, entropy, KL and band exits of an agent with the clip and of one without.

    Args:
        clipped, unclipped: seed of each, 0 to 7.
    """
    figure, axes = panels(2, height=4.6, rows=2)
    both = {
        f"clipped, seed {clipped}": (reference()["clipped"][clipped], BLUE, "-"),
        f"no clip, seed {unclipped}": (reference()["no clip"][unclipped], ORANGE, "--"),
    }
    numbers: dict[str, float | str] = {}
    for name, (run, color, line) in both.items():
        short = name.partition(",")[0]
        _plot(axes.flat, run, color, line, short)
        numbers[short] = _in_words(run)
    _label(axes)
    shared_legend(figure, axes[0, 0].lines, 2)
    words = "; ".join(
        f"{name}: {value}" for name, value in zip(both, numbers.values(), strict=True)
    )
    alt = (
        "Return of the batch, entropy, KL and share of ratios outside [0.8, 1.2] at the end of"
        f" each of 60 updates, of two agents. {words}."
    )
    return Drawing(figure, numbers, alt)


def _plot(axes: Any, run: AblationRun, color: str, line: str, name: str) -> None:
    updates = np.arange(1, len(run.kl) + 1)
    curves = (run.returns.mean(axis=1), run.entropy[:, 0], run.kl[:, -1], run.outside[:, -1])
    for ax, curve in zip(axes, curves, strict=True):
        ax.plot(updates, curve, line, color=color, linewidth=1.3, label=name)


def _in_words(run: AblationRun) -> str:
    return (
        f"{'dead' if run.dead else 'alive'}, last ten updates: return"
        f" {run.returns[-LAST:].mean():.0f}, entropy {run.entropy[-LAST:].mean():.3f} nats, KL"
        f" {run.kl[-LAST:, -1].mean():.4f} nats, outside {run.outside[-LAST:, -1].mean():.1%}"
    )


def _label(axes: Any) -> None:
    labels = ("mean return", "entropy (nats)", "KL, last step (nats)", "outside, last step")
    limits = ((-15, 515), (-0.02, 0.72), (-0.02, 10.0), (-0.03, 1.03))
    for ax, label, limit in zip(axes.flat, labels, limits, strict=True):
        ax.set(xlabel="update", ylabel=label, ylim=limit, xlim=(0, 61))
    axes[1, 0].set_yscale("symlog", linthresh=0.01)


BROKEN = LiveFigure(
    draw_diagnosis,
    {
        "clipped": Slider("seed", "of the clipped agent", 4, 0, 7, 1, whole=True),
        "unclipped": Slider("seed", "of the agent without clip", 4, 0, 7, 1, whole=True),
    },
)

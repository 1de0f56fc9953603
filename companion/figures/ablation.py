"""Section 08: learning curves of the ablation's agents, and what happens within a batch."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from companion.ablation import AblationSettings
from companion.ablation_records import Records, recorded, reference, summarized
from companion.compiled.ppo import run_all
from companion.drawing import Choice, Drawing, LiveFigure, Slider
from companion.figures.greek import EPSILON
from companion.figures.style import BLUE, KEPT, ORANGE, RED, panels, shared_legend
from companion.interval import proportion_interval

SHOWN = 8  # seeds


def draw_runs(clip_range: float, epochs: str, lr: float, entropy_coefficient: float) -> Drawing:
    """Draw the return of eight agents with the clip and of eight without, update by update.

    They are stored agents where there are any with these settings, else they are trained.

    Args:
        clip_range: half-width of the clip, > 0; stored are `ablation_records.CLIPS`.
        epochs: full-batch steps on each batch, of `ablation_records.EPOCHS`.
        lr: Adam's step size, > 0; stored are `ablation_records.RATES`.
        entropy_coefficient: >= 0; stored are `ablation_records.BONUSES`.
    """
    figure, axes = panels(2, height=3.0, sharey=True)
    numbers: dict[str, float | str] = {}
    for ax, clip in zip(axes, (clip_range, None), strict=True):
        records = _agents(clip, int(epochs), lr, entropy_coefficient)
        name = "no clip" if clip is None else f"clipped, {EPSILON} = {clip:.3g}"
        _curves(ax, records)
        ax.set_title(name, fontsize=9)
        ax.set(xlabel="update", xlim=(0, 61), ylim=(-15, 515))
        numbers |= _numbers("no clip" if clip is None else "clipped", records)
    axes[0].set_ylabel("mean return of the batch")
    alive = Line2D([], [], color=BLUE, label="alive at the end")
    dead = Line2D([], [], color=RED, linestyle="--", marker="x", label="dead")
    shared_legend(figure, [alive, dead], 2)
    alt = (
        f"Mean return of each batch over 60 updates, {SHOWN} agents a panel, K = {epochs},"
        f" clip range {clip_range:.3g}. Clipped: {numbers['clipped: dead']} dead, the last ten"
        f" updates average {numbers['clipped: last ten updates']}. Without the clip:"
        f" {numbers['no clip: dead']} dead, {numbers['no clip: last ten updates']}."
        " Dead agents are drawn dashed and end in a cross."
    )
    return Drawing(figure, numbers, alt)


@lru_cache(KEPT)
def _agents(
    clip_range: float | None, epochs: int, lr: float, entropy_coefficient: float
) -> Records:
    try:
        kept = recorded(clip_range, epochs, lr, entropy_coefficient)
    except ValueError:  # a value typed between the stops: some seconds
        one = AblationSettings(0, clip_range, epochs, lr, entropy_coefficient)
        return summarized(run_all(replace(one, seed=seed) for seed in range(SHOWN)))
    return Records(*(column[:SHOWN] for column in kept))


def _curves(ax: Any, records: Records) -> None:
    updates = np.arange(1, records.returns.shape[1] + 1)
    for returns, dead in zip(records.returns, records.dead, strict=True):
        color, line = (RED, "--") if dead else (BLUE, "-")
        ax.plot(updates, returns, line, color=color, linewidth=1)
        if dead:
            ax.plot(updates[-1], returns[-1], "x", color=RED, markersize=6)


def _numbers(name: str, records: Records) -> dict[str, float | str]:
    rate = proportion_interval(int(records.dead.sum()), SHOWN)
    return {
        f"{name}: dead": f"{records.dead.sum()} of {SHOWN} (95 % interval of the"
        f" rate: {rate.low:.2f} to {rate.high:.2f})",
        f"{name}: last ten updates": f"{records.final.mean():.0f}",
        f"{name}: ratios outside [0.8, 1.2]": f"{records.outside.mean():.1%}",
        f"{name}: entropy at the end": f"{records.entropy_last.mean():.2f} nats",
    }


RUNS = LiveFigure(
    draw_runs,
    {
        "clip_range": Slider(EPSILON, "clip range", 0.2, 0.05, 0.8, 0.60206, log=True),
        "epochs": Choice("K", "epochs", "20", ("1", "5", "20")),
        "lr": Slider("lr", "Adam's step size", 1e-2, 1e-3, 3.16228e-2, 0.5, log=True),
        "entropy_coefficient": Slider("c", "entropy coefficient", 1e-2, 1e-3, 1.0, 1.0, log=True),
    },
)


def draw_within(update: int) -> Drawing:
    """Draw KL, band exits and entropy before each step on one batch, of the chapter's agents.

    Args:
        update: 1 to 60.
    """
    figure, axes = panels(3, height=2.8)
    numbers: dict[str, float | str] = {}
    for name, color, line in (("clipped", BLUE, "-"), ("no clip", ORANGE, "--")):
        runs = reference()[name]
        curves = np.array([[run.kl, run.outside, run.entropy] for run in runs])[:, :, update - 1]
        epoch = np.arange(curves.shape[-1])
        for ax, seeds in zip(axes, np.moveaxis(curves, 1, 0), strict=True):
            ax.plot(epoch, seeds.T, line, color=color, linewidth=0.6, alpha=0.4)
            ax.plot(epoch, seeds.mean(axis=0), line, color=color, linewidth=2, label=name)
        kl, outside, entropy = curves[:, :, -1].mean(axis=0)
        numbers[f"{name}, last epoch"] = (
            f"KL {kl:.3f} nats, outside {outside:.1%}, entropy {entropy:.2f} nats"
        )
    for ax, label in zip(
        axes, ("KL (nats, symmetric log)", "share outside", "entropy (nats)"), strict=True
    ):
        ax.set(xlabel="steps taken on the batch", ylabel=label)
    axes[0].set_yscale("symlog", linthresh=0.01)
    axes[0].set_ylim(-0.1, 10)
    axes[1].set_ylim(-0.02, 1.02)
    axes[2].set_ylim(-0.02, 0.72)
    shared_legend(figure, axes[0].get_legend_handles_labels()[0], 2)
    words = "; ".join(f"{name}: {value}" for name, value in numbers.items())
    alt = (
        f"KL, share of ratios outside [0.8, 1.2] and entropy within update {update}, before each of"
        f" its 20 steps; thin lines are seeds, thick ones means over eight. {words}."
    )
    return Drawing(figure, numbers, alt)


WITHIN = LiveFigure(
    draw_within, {"update": Slider("update", "which batch", 1, 1, 60, 1, whole=True)}
)

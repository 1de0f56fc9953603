"""Section 06: four methods on one batch, epoch by epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from matplotlib.ticker import MaxNLocator

from companion.bandit import BanditSettings, EpochRecord, Method
from companion.compiled.bandit import run
from companion.drawing import Drawing, LiveFigure, Slider
from companion.figures.greek import BETA, EPSILON
from companion.figures.style import (
    BLUE,
    GREEN,
    INK,
    KEPT,
    ORANGE,
    PURPLE,
    panels,
    rung,
    shared_legend,
)


@dataclass(frozen=True)
class _Look:
    name: str
    color: str
    line: str
    marker: str


LOOKS: dict[Method, _Look] = {
    "none": _Look("no clipping", ORANGE, "-", "o"),
    "clip": _Look("clipped", BLUE, "--", "s"),
    "kl": _Look("KL penalty", GREEN, "-.", "v"),
    "adaptive kl": _Look("adaptive penalty", PURPLE, ":", "D"),
}
BLOCK = 10  # epochs


def train(
    method: Method, *, clip_range: float, beta: float, epochs: int, lr: float, seed: int
) -> tuple[EpochRecord, ...]:
    """Run one method of the experiment, or return its first epochs from an earlier run.

    Args:
        method, clip_range, beta, epochs, lr, seed: as in `BanditSettings`.

    Returns:
        One record per epoch, as `run` returns them.

    >>> two = train("clip", clip_range=0.2, beta=3.0, epochs=2, lr=3e-3, seed=0)
    >>> two == run(BanditSettings(method="clip", epochs=2))
    True
    """
    # A run of fewer epochs is the start of a longer one, so runs are made in blocks of epochs;
    # without a penalty beta changes nothing.
    settings = BanditSettings(
        method=method, clip_range=clip_range, epochs=_whole_blocks(epochs), lr=lr, seed=seed
    )
    if method in ("kl", "adaptive kl"):
        settings = replace(settings, beta=beta)
    return _run_once(settings)[:epochs]


def _whole_blocks(epochs: int) -> int:
    return -(-epochs // BLOCK) * BLOCK


_run_once = lru_cache(KEPT)(run)


def draw_epochs(clip_range: float, beta: float, epochs: int, lr: float, seed: int) -> Drawing:
    """Draw KL, share outside the band, largest ratio and improvement after each epoch.

    Args:
        clip_range: width of the band on either side of 1, > 0.
        beta: penalty coefficient, and the first one of the adaptive penalty, > 0.
        epochs: passes over the batch, >= 1.
        lr: Adam's step size, > 0.
        seed: of the problem, the batch, the initial policy and the shuffles, >= 0.
    """
    figure, axes = panels(2, height=5.0, rows=2)
    numbers: dict[str, float | str] = {}
    for method, look in LOOKS.items():
        records = train(method, clip_range=clip_range, beta=beta, epochs=epochs, lr=lr, seed=seed)
        _plot(axes.flat, records, look)
        last = records[-1]
        numbers[look.name] = (
            f"KL {last.kl:.3f} nats, outside {last.outside:.3f},"
            f" largest ratio {last.largest_ratio:.3f}, improvement {last.improvement:.3f}"
        )
    _label(axes, clip_range, epochs)
    _limit(axes)
    alt = (
        f"Mean KL, share of samples outside [{1 - clip_range:.2f}, {1 + clip_range:.2f}], largest"
        f" ratio and true improvement after each epoch on one batch, up to epoch"
        f" {epochs}, seed {seed}."
        f" At the end: {'; '.join(f'{name}: {value}' for name, value in numbers.items())}."
    )
    return Drawing(figure, numbers, alt)


def _plot(axes: Any, records: Sequence[EpochRecord], look: _Look) -> None:
    for ax, field in zip(axes, ("kl", "outside", "largest_ratio", "improvement"), strict=True):
        ax.plot(
            [record.epoch for record in records],
            [getattr(record, field) for record in records],
            color=look.color,
            linestyle=look.line,
            marker=look.marker,
            markersize=4,
            label=look.name,
        )


def _label(axes: Any, clip_range: float, epochs: int) -> None:
    kl, outside, largest, improvement = axes.flat
    kl.set(ylabel="mean KL(old, new) (nats, log)", yscale="log")
    outside.set(ylabel="share outside the band", ylim=(-0.03, 1.03))
    largest.axhline(1 + clip_range, color=INK, linewidth=0.8)
    largest.set(ylabel=f"largest ratio (line: 1 + {EPSILON})")
    improvement.set(ylabel="improvement (reward units)")
    for ax in axes.flat:
        ax.set(xlabel="epoch", xlim=(0.5, _whole_blocks(epochs) + 0.5))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    shared_legend(kl.figure, kl.lines, 4)


def _limit(axes: Any) -> None:
    """Set limits that hold the curves of most settings, so that a move seldom changes a scale."""
    low, high = zip(*(ax.dataLim.intervaly for ax in axes.flat), strict=True)
    kl, _, largest, improvement = axes.flat
    kl.set_ylim(min(1e-4, kl.dataLim.minposy / 2), max(10.0, 2 * high[0]))
    largest.set_ylim(0.9, max(7.0, rung(high[2])))
    improvement.set_ylim(min(0.0, 1.1 * low[3]), max(0.7, rung(high[3])))


EPOCHS = LiveFigure(
    draw_epochs,
    {
        "clip_range": Slider(EPSILON, "clip range", 0.2, 0.05, 0.5, 0.05),
        "beta": Slider(BETA, "penalty coefficient", 3.0, 0.3, 30.0, 0.1, log=True),
        "epochs": Slider("K", "epochs", 10, 1, 30, 1, whole=True),
        "lr": Slider("lr", "Adam's step size", 3e-3, 3e-4, 3e-2, 0.1, log=True),
        "seed": Slider("seed", "problem and batch", 0, 0, 19, 1, whole=True),
    },
)

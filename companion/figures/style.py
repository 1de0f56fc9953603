"""The look that all figures share: size, and colours that colour-blind readers can tell apart."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from functools import cache
from typing import Any

from matplotlib.figure import Figure

# Okabe & Ito's palette, without yellow, which is too pale for a line on white.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#56b4e9",
)
SHADE = "#e8e8e8"
INK = "#333333"
WIDTH = 6.8  # inches
KEPT = 64  # results of a draw function, as typed numbers have no end


def panels(columns: int, height: float = 2.9, rows: int = 1, **options: Any) -> tuple[Figure, Any]:
    """Start a figure of text width with its axes side by side.

    Args:
        columns: axes in a row.
        height: of the whole figure, in inches.
        rows: rows of axes.
        options: as `Figure.subplots` takes them, such as sharey; tuples for lists.

    Returns:
        The figure, unknown to pyplot, and its axes as an array (one axes if there is only one).
    """
    # A copy of blank axes takes a quarter of the time that making them does.
    copy, _ = _blank(columns, height, rows, tuple(sorted(options.items())))
    figure, axes = pickle.loads(copy)
    return figure, axes


def rung(size: float) -> float:
    """Round up to 1, 1.5, 2, 3, 5 or 7 times a power of ten: a limit that seldom moves.

    >>> rung(0.12), rung(3.0), rung(701.0)
    (0.15, 3.0, 1000.0)
    """
    power = 10.0 ** math.floor(math.log10(size))
    return float(f"{next(m for m in (1, 1.5, 2, 3, 5, 7, 10) if m * power >= size) * power:.3g}")


def legend_above(ax: Any, columns: int = 2) -> None:
    """Put the legend above the axes, where no curve reaches it whatever a slider does."""
    ax.legend(frameon=False, fontsize=8, ncols=columns, loc="lower center", bbox_to_anchor=(0.5, 1))


def shared_legend(figure: Figure, handles: Sequence[Any], columns: int) -> None:
    """Put one legend of labelled artists above all axes of a figure."""
    look = {"frameon": False, "fontsize": 8}
    figure.legend(handles=handles, loc="outside upper center", ncols=columns, **look)


@cache
def _blank(
    columns: int, height: float, rows: int, options: tuple[tuple[str, Any], ...]
) -> tuple[bytes, Figure]:
    """Return blank axes to be copied, and their original.

    A copied transform keeps the ids of its original's parents, and drops a parent whose id is one
    of these: a label then stays where it was. With the original alive, none is given again.
    """
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(rows, columns, **dict(options))
    for ax in figure.axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)
        ax.xaxis.label.set_fontsize(9)
        ax.yaxis.label.set_fontsize(9)
        ax.title.set_fontsize(9)
    return pickle.dumps((figure, axes)), figure

"""The look that all figures share: size, and colours that colour-blind readers can tell apart."""

from __future__ import annotations

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


def panels(columns: int, height: float = 2.9, rows: int = 1, **options: Any) -> tuple[Figure, Any]:
    """Start a figure of text width with its axes side by side.

    Args:
        columns: axes in a row.
        height: of the whole figure, in inches.
        rows: rows of axes.
        options: as `Figure.subplots` takes them, such as sharey.

    Returns:
        The figure, unknown to pyplot, and its axes as an array (one axes if there is only one).
    """
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(rows, columns, **options)
    for ax in figure.axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)
        ax.xaxis.label.set_fontsize(9)
        ax.yaxis.label.set_fontsize(9)
        ax.title.set_fontsize(9)
    return figure, axes

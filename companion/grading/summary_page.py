"""A class's summary as a picture, and as a page with the picture and its numbers."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import Any

from matplotlib.figure import Figure

from companion.figures.style import BLUE, INK, ORANGE, RED, SHADE, SKY, WIDTH
from companion.grading.export import number
from companion.grading.summary import PartSummary, Summary, mistakes, table

ROW = 0.16  # inches of a part
FEWEST_ROWS = 5
MOST_MISTAKES = 10
LONGEST_NAME = 58
KINDS = (("right", BLUE), ("mistake named", ORANGE), ("otherwise wrong", RED), ("not tried", SHADE))
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>The class's summary</title>
<style>
body {{ font: 16px/1.5 sans-serif; max-width: 56em; margin: 2em auto; padding: 0 1em; }}
img {{ width: 100%; }}
pre {{ overflow-x: auto; font-size: 13px; }}
</style>
</head>
<body>
<h1>The class's summary</h1>
<p>{head}</p>
<img src="data:image/png;base64,{picture}" alt="{alt}">
<h2>The numbers</h2>
<pre>{numbers}</pre>
</body>
</html>
"""


def draw(summary: Summary) -> Figure:
    """Draw each part's answers by how they came out, the frequent mistakes, and the totals."""
    parts = [one for one in summary.parts if not one.part.endswith("-written")]
    half = max((len(parts) + 1) // 2, FEWEST_ROWS)
    often = mistakes(summary)[:MOST_MISTAKES]
    heights = [ROW * half + 0.5, ROW * max(len(often), 1) + 0.6, 1.3]
    figure = Figure(figsize=(WIDTH, sum(heights) + 0.4), layout="constrained")
    axes = figure.subplot_mosaic(
        [["left", "right"], ["mistakes", "mistakes"], ["totals", "totals"]], height_ratios=heights
    )
    for ax in axes.values():
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=7.5)
    _draw_parts(axes["left"], parts[:half], half)
    _draw_parts(axes["right"], parts[half:], half)
    handles, labels = axes["left"].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    _draw_mistakes(axes["mistakes"], often)
    _draw_totals(axes["totals"], summary)
    return figure


def _draw_parts(ax: Any, parts: Sequence[PartSummary], rows: int) -> None:
    """Draw a bar per part; the names of hard parts are red and say so."""
    ax.set_visible(bool(parts))
    left = [0.0] * len(parts)
    shares = [_shares(one) for one in parts]
    for k, (kind, color) in enumerate(KINDS):
        widths = [share[k] for share in shares]
        ax.barh(range(len(parts)), widths, left=left, color=color, height=0.8, label=kind)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    ax.set_yticks(range(len(parts)), [one.part + " hard" * one.hard for one in parts], fontsize=7.5)
    for label, one in zip(ax.get_yticklabels(), parts, strict=True):
        label.set_color(RED if one.hard else INK)
        label.set_fontweight("bold" if one.hard else "normal")
    ax.set(xlim=(0, 100), ylim=(rows - 0.5, -0.5))
    ax.set_xlabel("students, %", fontsize=8)
    ax.tick_params(axis="y", length=0)


def _shares(one: PartSummary) -> tuple[float, ...]:
    """Return the shares of KINDS, in percent."""
    named = sum(one.mistakes.values())
    counts = (one.right, named, one.tried - one.right - named, one.students - one.tried)
    return tuple(100 * count / one.students for count in counts)


def _draw_mistakes(ax: Any, often: Sequence[tuple[str, str, int]]) -> None:
    """Draw how many students were told each frequent misconception, named beside its bar."""
    ax.set_title("most frequent mistakes", fontsize=9, loc="left")
    most = max((n for *_, n in often), default=1)
    ax.barh(range(len(often)), [n for *_, n in often], color=ORANGE, height=0.8)
    for row, (_, name, n) in enumerate(often):
        short = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 3] + "..."
        ax.text(n + 0.02 * most, row, f"{n}  {short}", va="center", fontsize=7.5, color=INK)
    ax.set_yticks(range(len(often)), [part for part, *_ in often], fontsize=7.5)
    ax.set(ylim=(max(len(often), 1) - 0.5, -0.5), xlim=(0, 2.4 * most), xticks=[])
    ax.spines["bottom"].set_visible(False)
    ax.tick_params(axis="y", length=0)


def _draw_totals(ax: Any, summary: Summary) -> None:
    ax.hist(summary.totals, bins=20, range=(0, summary.most or 1), color=SKY, edgecolor="white")
    ax.set_title("points of all parts, by students", fontsize=9, loc="left")
    ax.set_xlabel(f"points, of {number(summary.most)}", fontsize=8)
    ax.yaxis.get_major_locator().set_params(integer=True)
    ax.set_xlim(0, summary.most or 1)


def png(figure: Figure) -> bytes:
    """Return a figure's PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    return buffer.getvalue()


def alt(summary: Summary) -> str:
    """Say in words what the picture shows."""
    hard = [one.part for one in summary.parts if one.hard and not one.part.endswith("-written")]
    often = [f"{part}, {name}: {n} students" for part, name, n in mistakes(summary)[:3]]
    return (
        "Three charts. How each part's answers came out, as shares of the class; hard parts: "
        f"{', '.join(hard) or 'none'}. The most frequent mistakes: {'; '.join(often) or 'none'}. "
        f"The students' points, from {number(min(summary.totals))} to "
        f"{number(max(summary.totals))} of {number(summary.most)}."
    )


def page(summary: Summary, picture: bytes) -> str:
    """Return the page, in HTML, that needs no other file and could run nothing."""
    head, _, numbers = table(summary).partition("\n")
    return PAGE.format(
        head=escape(head),
        picture=base64.b64encode(picture).decode(),
        alt=escape(alt(summary)),
        numbers=escape(numbers.strip("\n")),
    )

"""Pictures are the same whether the frame was kept or drawn, and are what matplotlib draws."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from companion.drawing import Choice
from companion.render import DENSITY, WIDTH, Renderer
from tests.figure_data import live_figures

FIGURES = live_figures()


def pixels(picture: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"), dtype=float)


@pytest.mark.parametrize("name", FIGURES)
def test_a_kept_frame_gives_the_same_picture(name: str) -> None:
    figure = FIGURES[name]
    start = figure.defaults()
    kept = Renderer()
    for keyword, control in figure.controls.items():
        other = control.options[-1] if isinstance(control, Choice) else control.high
        kept.png(figure.draw(**(start | {keyword: other})).figure)
    fresh = pixels(Renderer().png(figure.draw(**start).figure))
    again = pixels(kept.png(figure.draw(**start).figure))
    # Sizes of texts that are remembered may round a label to the neighbouring pixel.
    assert (np.abs(again - fresh).max(axis=-1) > 32).mean() < 0.002


@pytest.mark.parametrize("name", FIGURES)
def test_the_picture_is_matplotlibs_own_up_to_what_lies_on_top(name: str) -> None:
    figure = FIGURES[name]
    ours = pixels(Renderer().png(figure.draw(**figure.defaults()).figure))
    plain = figure.draw(**figure.defaults()).figure
    buffer = io.BytesIO()
    plain.savefig(buffer, format="png", dpi=WIDTH * DENSITY / plain.get_figwidth())
    theirs = pixels(buffer.getvalue())
    assert ours.shape == theirs.shape
    # Ticks and legends under the data instead of over it change some pixels where they cross.
    differing = (np.abs(ours - theirs).max(axis=-1) > 32).mean()
    assert differing < 0.002


def make(high: float = 1.0, xlabel: str = "x", **line: Any) -> Figure:
    figure = Figure(figsize=(4, 2), layout="constrained")
    ax = figure.subplots()
    ax.plot([0, high], **({"label": "line"} | line))
    ax.set_xlabel(xlabel)
    ax.legend(loc="lower right")
    return figure


@pytest.mark.parametrize(
    "change",
    [
        {"high": 2.0},
        {"xlabel": "other"},
        {"label": "other"},
        {"color": "red"},
        {"linestyle": "--"},
        {"marker": "o"},
    ],
)
def test_what_a_frame_shows_decides_whether_it_is_kept(change: dict[str, Any]) -> None:
    renderer = Renderer()
    first, other = renderer.png(make()), renderer.png(make(**change))
    assert first != other
    assert other == Renderer().png(make(**change))
    assert renderer.png(make()) == first


def test_a_legend_that_looks_for_room_moves_with_the_data() -> None:
    def rising(sign: int) -> Figure:
        figure = Figure(figsize=(4, 2))
        ax = figure.subplots()
        ax.plot([0, sign], label="line")
        ax.set_ylim(-1, 1)
        ax.legend(loc="best")
        return figure

    renderer = Renderer()
    assert [renderer.png(rising(sign)) for sign in (1, -1)] == [
        Renderer().png(rising(sign)) for sign in (1, -1)
    ]

"""Pictures are the same whether the frame was kept or drawn, and are what matplotlib draws."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from companion.render import DENSITY, WIDTH, Renderer
from tests.figure_data import live_figures

FIGURES = live_figures()


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=float)


@pytest.mark.parametrize("name", FIGURES)
def test_a_kept_frame_gives_the_same_picture(name: str) -> None:
    figure = FIGURES[name]
    start = figure.defaults()
    kept = Renderer()
    for keyword, control in figure.controls.items():
        other = getattr(control, "high", None) or control.options[-1]  # type: ignore[union-attr]
        kept.png(figure.draw(**(start | {keyword: other})).figure)
    assert kept.png(figure.draw(**start).figure) == Renderer().png(figure.draw(**start).figure)


@pytest.mark.parametrize("name", FIGURES)
def test_the_picture_is_matplotlibs_own_up_to_what_lies_on_top(name: str) -> None:
    figure = FIGURES[name]
    ours = pixels(Renderer().png(figure.draw(**figure.defaults()).figure))
    plain = figure.draw(**figure.defaults()).figure
    buffer = io.BytesIO()
    plain.savefig(buffer, format="png", dpi=WIDTH * DENSITY / plain.get_figwidth())
    theirs = pixels(buffer.getvalue())
    assert ours.shape == theirs.shape
    # Ticks under data instead of over them change some pixels where the two cross.
    differing = (np.abs(ours - theirs).max(axis=-1) > 32).mean()
    assert differing < 0.002


def test_new_limits_or_labels_get_a_frame_of_their_own() -> None:
    def make(high: float, label: str) -> Figure:
        figure = Figure(figsize=(4, 2), layout="constrained")
        ax = figure.subplots()
        ax.plot([0, high])
        ax.set_xlabel(label)
        return figure

    renderer = Renderer()
    pictures = [renderer.png(make(high, label)) for high, label in [(1, "a"), (2, "a"), (1, "b")]]
    fresh = [Renderer().png(make(high, label)) for high, label in [(1, "a"), (2, "a"), (1, "b")]]
    assert pictures == fresh
    assert len(set(pictures)) == 3

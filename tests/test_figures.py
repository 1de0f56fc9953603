"""Every live figure: its data, its controls at both ends, and what it offers without a picture."""

from __future__ import annotations

import gc
import json
import re
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.transforms import TransformNode

from companion.drawing import Choice, Slider
from companion.figures.style import panels
from tests.figure_data import STORE, live_figures, plotted

FIGURES = live_figures()
STORED = json.loads(STORE.read_text(encoding="utf-8"))


def ends(control: Slider | Choice) -> list[float | str]:
    return list(control.options) if isinstance(control, Choice) else [control.low, control.high]


def test_every_figure_has_stored_data() -> None:
    assert sorted(STORED) == sorted(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_plotted_data_is_the_stored_data(name: str) -> None:
    figure = FIGURES[name]
    data = plotted(figure.draw(**figure.defaults()).figure)
    assert data.keys() == STORED[name].keys()
    for part, values in data.items():
        scale = np.nanmax(np.abs(values), initial=1e-9)
        np.testing.assert_allclose(
            values, STORED[name][part], rtol=1e-4, atol=1e-6 * scale, err_msg=part
        )


@pytest.mark.parametrize("name", FIGURES)
def test_every_end_of_every_control_draws(name: str) -> None:
    figure = FIGURES[name]
    for keyword, control in figure.controls.items():
        for value in ends(control):
            drawing = figure.draw(**(figure.defaults() | {keyword: value}))
            # A caption is sentences with numbers in them: words for a reader who sees no picture.
            assert re.search(r"[A-Z].{60,}\.$", drawing.alt)
            assert re.search(r"\d", drawing.alt)
            assert "nan" not in drawing.alt
            for name, number in drawing.numbers.items():
                assert "nan" not in f"{number}", name
            for ax in drawing.figure.axes:
                assert ax.get_xlabel()
                siblings = ax.get_shared_y_axes().get_siblings(ax)
                assert any(other.get_ylabel() for other in siblings)


@pytest.mark.parametrize("name", FIGURES)
def test_moving_a_control_changes_the_data(name: str) -> None:
    figure = FIGURES[name]
    before = figure.draw(**figure.defaults())
    for keyword, control in figure.controls.items():
        other = next(value for value in ends(control) if value != control.start)
        after = figure.draw(**(figure.defaults() | {keyword: other}))
        moved = plotted(after.figure) != plotted(before.figure)
        assert moved or after.numbers != before.numbers, keyword


def test_no_figure_stays_open_in_pyplot() -> None:
    for figure in FIGURES.values():
        figure.draw(**figure.defaults())
    assert plt.get_fignums() == []


def test_no_parent_of_a_copied_transform_can_be_mistaken_for_another() -> None:
    """Copies remember parents by the originals' ids; one given again would cut off its owner."""
    panels(3, height=1.234)
    gc.collect()
    before = {id(node) for node in transforms()}
    copy = panels(3, height=1.234)
    made = [node for node in transforms() if id(node) not in before]
    alive = {id(x) for x in gc.get_objects()}
    assert len(made) > 100
    assert all(parent in alive for node in made for parent in node._parents)
    del copy


def transforms() -> list[Any]:
    return [x for x in gc.get_objects() if issubclass(type(x), TransformNode)]

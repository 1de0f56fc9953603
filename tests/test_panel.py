"""A panel draws once a move, shows what it drew, and stays alive whatever a reader does."""

from __future__ import annotations

import base64
import json
from typing import Any

import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure

from companion import show
from companion.drawing import Choice, Drawing, LiveFigure, Slider
from companion.panel import Panel
from companion.show import live, number

DRAWN: list[tuple[float, int, str]] = []


def draw_power(x: float, n: int, kind: str) -> Drawing:
    """Plot one line; refuse x = 3 so that a test can see an error."""
    DRAWN.append((x, n, kind))
    if x == 3:
        raise ValueError("x must not be 3 <here>")
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([0, x**n])
    return Drawing(figure, {"power": x**n, "kind": kind}, f'A "line" to {x:g}.')


POWER = LiveFigure(
    draw_power,
    {
        "x": Slider("x", "a number", 1.0, 0.0, 4.0, 0.05),
        "n": Slider("n", "exponent", 2, 1, 3, 1, whole=True),
        "kind": Choice("k", "kind", "one", ("one", "two")),
    },
)
LOG = LiveFigure(
    lambda x: draw_power(x, 1, "log"), {"x": Slider("x", "size", 0.1, 1e-3, 10.0, 0.25, log=True)}
)


@pytest.fixture
def panel() -> Panel:
    made = Panel(POWER, number)
    DRAWN.clear()
    return made


def test_a_move_of_the_slider_draws_once_and_shows_number_picture_and_alt(panel: Panel) -> None:
    before = panel.view.value
    panel.controls["x"].slider.value = 2.0
    assert DRAWN == [(2.0, 2, "one")]
    assert panel.controls["x"].box.value == 2.0
    assert panel.view.value.count("<img ") == 1
    assert 'alt="A &quot;line&quot; to 2."' in panel.view.value
    assert ">4</td>" in panel.view.value
    assert panel.view.value != before


def test_a_typed_number_is_kept_while_the_slider_goes_to_the_stop_beside_it(panel: Panel) -> None:
    x = panel.controls["x"]
    x.box.value = 0.123
    panel.controls["n"].box.value = 3
    panel.controls["kind"].box.value = "two"
    assert DRAWN == [(0.123, 2, "one"), (0.123, 3, "one"), (0.123, 3, "two")]
    assert x.slider.value == 0.1
    x.slider.value = 0.1 + 1e-9  # as the browser answers
    assert x.box.value == 0.123
    x.slider.value = 0.15000000000000002
    assert x.box.value == 0.15
    assert len(DRAWN) == 4


def test_on_a_log_scale_the_stop_beside_a_number_is_the_nearest_in_ratio() -> None:
    control = Panel(LOG, number).controls["x"]
    control.box.value = 7.4  # between 5.62341 and 10, whose geometric mean is 7.499
    assert control.slider.value == 5.62341


def test_a_typed_number_outside_the_range_becomes_its_end(panel: Panel) -> None:
    panel.controls["x"].box.value = 99.0
    panel.controls["n"].box.value = -5
    assert panel.parameters() == {"x": 4.0, "n": 1, "kind": "one"}


def test_a_slider_stops_at_the_numbers_of_its_grid() -> None:
    for figure in (POWER, LOG):
        panel = Panel(figure, number)
        control, slider = panel.controls["x"], figure.controls["x"]
        assert isinstance(slider, Slider)
        steps = control.slider.step if not slider.log else 10**control.slider.step
        DRAWN.clear()
        for i in range(len(slider.grid())):
            low = slider.low
            control.slider.value = low * steps**i if slider.log else low + i * steps
        drawn = {x for x, *_ in DRAWN} | {slider.start}
        assert drawn == set(slider.grid())


def test_an_error_takes_the_pictures_place_and_the_next_move_draws_again(panel: Panel) -> None:
    panel.controls["x"].slider.value = 3.0
    assert "ValueError: x must not be 3 &lt;here&gt;" in panel.view.value
    assert "<img" not in panel.view.value
    panel.controls["x"].slider.value = 2.0
    assert "<img" in panel.view.value
    assert "Error" not in panel.view.value


def test_a_setting_seen_before_is_not_drawn_again(panel: Panel) -> None:
    x = panel.controls["x"].slider
    first = panel.view.value
    for value in (2.0, 1.0, 2.0, 1.0):
        x.value = value
    assert panel.view.value == first
    assert DRAWN == [(2.0, 2, "one")]
    for value in (3.0, 2.0, 3.0):  # an error may have had a passing cause
        x.value = value
    assert DRAWN == [(2.0, 2, "one"), (3.0, 2, "one"), (3.0, 2, "one")]


def test_reset_draws_nothing_on_the_way_back(panel: Panel) -> None:
    first = panel.view.value
    panel.controls["x"].slider.value = 2.5
    panel.controls["n"].box.value = 3
    panel.controls["kind"].box.value = "two"
    DRAWN.clear()
    panel.reset()
    assert DRAWN == []  # the first setting has been drawn
    assert panel.parameters() == POWER.defaults()
    assert panel.view.value == first
    panel.controls["x"].slider.value = 2.0
    assert DRAWN == [(2.0, 2, "one")]


def test_no_figure_stays_open(panel: Panel) -> None:
    for i in range(20):
        panel.controls["x"].slider.value = i / 10
    assert plt.get_fignums() == []


def test_the_output_holds_a_picture_for_pages_without_a_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr(show, "display", lambda bundle, **_: shown.append(bundle))
    live(POWER)
    (bundle,) = shown
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert bundle["text/plain"].startswith('A "line" to 1.\n')
    assert "power" in bundle["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" in bundle
    json.dumps(bundle)

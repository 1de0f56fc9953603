"""What a page without a kernel holds of a live figure: its settings, and its shapes."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.path import Path

from companion.drawing import Choice, Drawing, LiveFigure, Slider
from companion.frames import MOST_FRAMES, grid, record, script, unpacked
from companion.svg_path import UNITS, path_data
from companion.vector import Recorder
from tests.figure_data import live_figures

FIGURES = live_figures()


@pytest.mark.parametrize("name", FIGURES)
def test_a_grid_holds_start_and_ends_and_only_stops_of_the_slider(name: str) -> None:
    figure = FIGURES[name]
    stops = grid(figure)
    for keyword, control in figure.controls.items():
        shown = stops.stops[keyword]
        every = list(control.options) if isinstance(control, Choice) else control.grid()
        assert shown[stops.start[keyword]] == control.start
        assert (shown[0], shown[-1]) == (every[0], every[-1])
        assert set(shown) <= {*every, control.start}
        assert len(shown) == len(every) or len(figure.controls) == 3
    assert len(stops.settings()) <= MOST_FRAMES or len(figure.controls) < 3
    assert figure.defaults() in stops.settings()


def line(slope: float, shift: float, color: str) -> Drawing:
    figure = Figure(figsize=(4, 2), layout="constrained")
    ax = figure.subplots()
    ax.plot([0, 1], [shift, shift + slope], color=color)
    ax.set(xlim=(0, 1), ylim=(0, 3), xlabel="x")
    return Drawing(figure, {"slope": slope}, f"A line of slope {slope}.")


LINE = LiveFigure(
    line,
    {
        "slope": Slider("s", "slope", 0.5, 0.0, 1.0, 0.5),
        "shift": Slider("b", "shift", 1.0, 0.0, 2.0, 1.0),
        "color": Choice("c", "colour", "red", ("red", "blue")),
    },
)


def test_settings_run_through_all_combinations_the_last_fastest() -> None:
    settings = [tuple(setting.values()) for setting in grid(LINE).settings()]
    assert settings[:3] == [(0.0, 0.0, "red"), (0.0, 0.0, "blue"), (0.0, 1.0, "red")]
    assert len(set(settings)) == len(settings) == 3 * 3 * 2


def test_of_too_many_settings_every_second_stop_of_the_longest_slider_goes() -> None:
    longer = Slider("s", "slope", 0.5, 0.0, 1.0, 0.125)
    figure = LiveFigure(line, {**LINE.controls, "slope": longer})
    assert len(grid(figure, most=54).settings()) == 9 * 3 * 2
    assert grid(figure, most=53).stops["slope"] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert grid(figure, most=1).stops["slope"] == [0.0, 0.5, 1.0]


def test_more_than_three_controls_are_all_combined_or_leave_the_start_one_at_a_time() -> None:
    four = LiveFigure(line, {**LINE.controls, "other": Slider("o", "other", 0, 0, 1, 1)})
    assert len(grid(four, most=36).settings()) == 3 * 3 * 2 * 2
    settings = grid(four, most=35).settings()
    start = four.defaults()
    assert len(settings) == 3 + 3 + 2 + 2
    assert all(sum(setting[k] != start[k] for k in start) <= 1 for setting in settings)


def test_frames_share_what_they_have_in_common() -> None:
    data = record(LINE)
    assert len(data["frames"]) == 18
    # Axes and labels once; of the line one path for each slope and each place where it is cut.
    assert len(data["marks"]) < 18 + 40
    assert len(set(map(str, data["groups"]))) == len(data["groups"])
    texts = data["texts"]
    assert [texts[i] for i in data["numbers"][0]] == ["slope", "< 1e-12"]
    assert texts[data["alts"][-1]] == "A line of slope 1.0."


def test_a_script_holds_what_was_recorded() -> None:
    assert unpacked(script("line.LINE", LINE)) == json.loads(json.dumps(record(LINE)))


def test_a_hatch_is_a_tile_of_an_inch_and_covers_what_is_filled() -> None:
    figure = Figure(figsize=(4, 2))
    figure.subplots().bar([0, 1], [1, 2], color="red", hatch="/")
    recorder = Recorder()
    recorder.record(figure)
    shapes = recorder.shapes
    ((side, _, style),) = shapes.hatches.values()
    assert side == int(figure.get_dpi()) * UNITS
    assert 'stroke="#000000"' in style
    styles = shapes.styles.values()
    filled, hatched = (
        [(path, *place) for path, own, *place in shapes.marks.values() if paint in styles[own]]
        for paint in ('fill="#ff0000"', 'fill="url(#hatch0)"')
    )
    assert len(filled) == 2
    assert filled == hatched


def test_the_same_figure_is_recorded_once() -> None:
    recorder = Recorder()
    first, again, other = (
        recorder.record(line(slope, 1.0, "red").figure) for slope in (0.5, 0.5, 1.0)
    )
    assert first == again != other


def absolute(start: np.ndarray, data: str) -> list[np.ndarray]:
    """Return the ends of the segments of SVG path data, in the path's own unit."""
    here = np.rint(start * UNITS)
    ends = [here]
    for letter, numbers in re.findall(r"([mlqcz])([-\d ]*)", data):
        if letter != "z":
            steps = np.array([float(x) for x in re.findall(r"-?\d+", numbers)]).reshape(-1, 2)
            for step in steps[{"q": 1, "c": 2}.get(letter, 0) :: {"q": 2, "c": 3}.get(letter, 1)]:
                here = here + step
                ends.append(here)
    return [end / UNITS for end in ends]


def test_path_data_lead_where_the_path_leads() -> None:
    rng = np.random.default_rng(0)
    codes = [Path.MOVETO, Path.LINETO, *[Path.CURVE3] * 4, *[Path.CURVE4] * 3, Path.LINETO]
    for _ in range(20):
        vertices = rng.uniform(-500, 500, (len(codes), 2))
        ends = np.array(absolute(*path_data(Path(vertices, codes))))
        expected = vertices[[0, 1, 3, 5, 8, 9]]
        assert np.abs(ends - expected).max() <= 1 / UNITS

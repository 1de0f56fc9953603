"""A live figure at every stop of its controls, for a page that has no kernel to draw it."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from companion.drawing import Choice, Drawing, LiveFigure, Slider
from companion.render import DENSITY, WIDTH
from companion.show import number
from companion.svg_path import UNITS
from companion.vector import Recorder, Table

MOST_FRAMES = 200  # of a figure with three controls or more: what keeps a build short
MOST_THINNED = 3  # controls; of more, even a coarse grid is too large

Setting = dict[str, float | str]


@dataclass(frozen=True)
class Grid:
    """The settings of a live figure that a page holds.

    stops: for each parameter its values, its start among them.
    start: for each parameter the position of its start.
    joint: whether every combination is there; else one parameter leaves its start at a time.
    """

    stops: dict[str, list[float | str]]
    start: dict[str, int]
    joint: bool

    def settings(self) -> list[Setting]:
        """List the settings: the last parameter fastest, or one parameter after the other."""
        if self.joint:
            rows = itertools.product(*self.stops.values())
            return [dict(zip(self.stops, row, strict=True)) for row in rows]
        start = {name: values[self.start[name]] for name, values in self.stops.items()}
        return [start | {name: x} for name, values in self.stops.items() for x in values]


def grid(figure: LiveFigure, most: int = MOST_FRAMES) -> Grid:
    """Choose the stops that a page shows.

    All of them for one or two controls; of three, every second stop of the longest slider goes,
    again and again, until there are few enough settings. Starts and ends stay. Of more, all
    combinations if they are few enough.

    Args:
        figure: the live figure.
        most: settings of a figure with three controls or more, if starts and ends are no more.
    """
    stops = {name: _stops(control) for name, control in figure.controls.items()}
    while len(stops) == MOST_THINNED and math.prod(map(len, stops.values())) > most:
        # With three stops left, start and ends, a slider cannot be thinned any more.
        longest = max(_sliders(figure), key=lambda name: len(stops[name]))
        if len(stops[longest]) <= 3:
            break
        stops[longest] = _every_second(stops[longest], figure.controls[longest].start)
    start = {name: stops[name].index(control.start) for name, control in figure.controls.items()}
    joint = len(stops) <= MOST_THINNED or math.prod(map(len, stops.values())) <= most
    return Grid(stops, start, joint)


def _sliders(figure: LiveFigure) -> list[str]:
    return [name for name, control in figure.controls.items() if isinstance(control, Slider)]


def _stops(control: Slider | Choice) -> list[float | str]:
    if isinstance(control, Choice):
        return list(control.options)
    return sorted({*control.grid(), control.start})


def _every_second(stops: Sequence[float | str], start: float | str) -> list[float | str]:
    parity, last = stops.index(start) % 2, len(stops) - 1
    return [x for i, x in enumerate(stops) if i % 2 == parity or i in (0, last)]


def stop_text(value: float | str) -> str:
    """Write the value of a control as a reader sees it.

    >>> stop_text(0.25), stop_text(1e-05), stop_text(3.16228e-05), stop_text("trap")
    ('0.25', '1e-5', '3.16e-5', 'trap')
    """
    return value if isinstance(value, str) else f"{value:.3g}".replace("e-0", "e-")


def read_beside(drawing: Drawing) -> dict[str, str]:
    """Return the numbers of a drawing as a reader sees them beside it."""
    return {name: number(value) for name, value in drawing.numbers.items()}


def record(figure: LiveFigure) -> dict[str, Any]:
    """Draw a figure at every setting of its grid.

    Returns:
        For `json`: the lists of `Shapes`; size, (width, height) in their units; texts; and for each
        setting its group, its alt text and its numbers (name, value, ...), as positions in texts.
    """
    recorder, texts = Recorder(), Table()
    frames, alts, numbers = [], [], []
    height = 0.0
    for setting in grid(figure).settings():
        drawing = figure.draw(**setting)
        height = drawing.figure.get_figheight() / drawing.figure.get_figwidth() * WIDTH
        frames.append(recorder.record(drawing.figure))
        alts.append(texts.number(drawing.alt))
        pairs = itertools.chain.from_iterable(read_beside(drawing).items())
        numbers.append([texts.number(text) for text in pairs])
    shapes = {name: table.values() for name, table in vars(recorder.shapes).items()}
    size = [WIDTH * DENSITY * UNITS, round(height * DENSITY * UNITS)]
    return shapes | {
        "size": size,
        "texts": texts.values(),
        "frames": frames,
        "alts": alts,
        "numbers": numbers,
    }


def script(name: str, figure: LiveFigure) -> str:
    """Write the recorded figure as a script, which a page can load from a file too.

    Compressed to a fifth, it needs no server that compresses; live.js unpacks it.
    """
    data = json.dumps(record(figure), ensure_ascii=False, separators=(",", ":")).encode()
    packed = base64.b64encode(gzip.compress(data, mtime=0)).decode("ascii")
    return f'companionFrames("{name}","{packed}");\n'


def unpacked(script: str) -> Any:
    """Return what `record` did, from the script."""
    return json.loads(gzip.decompress(base64.b64decode(script.split('"')[3])))

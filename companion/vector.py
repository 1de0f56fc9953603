"""Matplotlib figures to shapes that many figures share: what a page needs to show a whole grid."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from matplotlib.backend_bases import FigureCanvasBase, GraphicsContextBase, RendererBase
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D, Transform

from companion.render import DENSITY, WIDTH, _data_artists, _frame_key
from companion.svg_path import UNITS, path_data


class Table:
    """Values by number, each kept once."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def number(self, value: Hashable) -> int:
        """Return the value's number, a new one for a new value."""
        return self._numbers.setdefault(value, len(self._numbers))

    def values(self) -> list[Any]:
        """List the values in the order of their numbers."""
        return list(self._numbers)


class Shapes:
    """What recorded figures consist of.

    paths: SVG path data without the starting point, relative to it throughout.
    styles: SVG attributes; url(#hatch0) stands for the first of the hatches.
    clips: (x, y, width, height).
    hatches: (side of the square tile, SVG path data in it, SVG attributes).
    marks: (path, style, clip or -1, x, y, ...), a shape in one place or several.
    groups: tuples of members in drawing order: m for mark m, -1 - g for group g.
    """

    def __init__(self) -> None:
        self.paths, self.styles, self.clips, self.hatches = Table(), Table(), Table(), Table()
        self.marks, self.groups = Table(), Table()


class _Still(NamedTuple):
    positions: list[Any]  # of the axes, as the layout engine placed them
    group: int  # everything but the data


class Recorder(RendererBase):
    """Records the figures of one draw function, all of one size, as groups of shapes.

    The result is what `companion.render.Renderer` draws, in the same places: layout and text
    metrics are those of the raster backend. Axes that have not changed are not drawn again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.shapes = Shapes()
        self._stills: dict[Any, _Still] = {}
        self._members: list[int] = []
        self._outer: list[list[int]] = []

    def record(self, figure: Figure) -> int:
        """Record a figure and return the number of its group.

        Args:
            figure: as a draw function returns it; it is used up.
        """
        self._dpi = WIDTH * DENSITY / figure.get_figwidth()
        figure.set_dpi(self._dpi)
        canvas = _Canvas(figure, self)
        self._size = canvas.get_width_height()
        self._agg = RendererAgg(*self._size, self._dpi)
        data = {ax: _data_artists(ax) for ax in figure.axes}
        key = _frame_key(figure)
        if key not in self._stills:
            self._stills[key] = self._record_still(figure, data)
        still = self._stills[key]
        figure.set_layout_engine("none")
        for ax, position in zip(figure.axes, still.positions, strict=True):
            ax.set_position(position)
        self._members = [-1 - still.group]
        for artists in data.values():
            for artist in artists:
                artist.draw(self)
        return self.shapes.groups.number(tuple(self._members))

    def _record_still(self, figure: Figure, data: Any) -> _Still:
        if engine := figure.get_layout_engine():
            engine.execute(figure)
        positions = [ax.get_position() for ax in figure.axes]
        figure.set_layout_engine("none")
        everything = [artist for artists in data.values() for artist in artists]
        for artist in everything:
            artist.set_animated(True)  # left out of the drawing that follows
        self._members = []
        figure.draw(self)
        return _Still(positions, self.shapes.groups.number(tuple(self._members)))

    def open_group(self, s: str, gid: str | None = None) -> None:
        self._outer.append(self._members)
        self._members = []

    def close_group(self, s: str) -> None:
        inner, self._members = self._members, self._outer.pop()
        if inner:
            self._members.append(-1 - self.shapes.groups.number(tuple(inner)))

    def points_to_pixels(self, points: Any) -> Any:
        return points * self._dpi / 72

    def get_canvas_width_height(self) -> tuple[float, float]:
        return self._size

    def get_text_width_height_descent(self, s: str, prop: Any, ismath: Any) -> Any:
        return self._agg.get_text_width_height_descent(s, prop, ismath)

    def draw_path(
        self, gc: GraphicsContextBase, path: Path, transform: Transform, rgbFace: Any = None
    ) -> None:
        width, height = self._size
        cleaned = path.cleaned(
            transform + self._downwards(),
            remove_nans=True,
            clip=(0, 0, width, height) if rgbFace is None else None,
            simplify=path.should_simplify and rgbFace is None,
            curves=True,
            stroke_width=self.points_to_pixels(gc.get_linewidth()),
            snap=gc.get_snap(),
        )
        self._place(gc, self._style(gc, rgbFace), cleaned)
        if gc.get_hatch():
            self._place(gc, self._hatch(gc), cleaned)

    def draw_markers(
        self,
        gc: GraphicsContextBase,
        marker_path: Path,
        marker_trans: Transform,
        path: Path,
        trans: Transform,
        rgbFace: Any = None,
    ) -> None:
        marker = marker_path.transformed(marker_trans + Affine2D().scale(1, -1))
        places = (trans + self._downwards()).transform(path.vertices)
        self._place(gc, self._style(gc, rgbFace), marker, places[np.isfinite(places).all(axis=1)])

    def draw_text(
        self,
        gc: GraphicsContextBase,
        x: float,
        y: float,
        s: str,
        prop: FontProperties,
        angle: float,
        ismath: Any = False,
        mtext: Any = None,
    ) -> None:
        size = self.points_to_pixels(prop.get_size_in_points()) / text_to_path.FONT_SCALE
        turned = Affine2D().scale(size, -size).rotate_deg(-angle)
        outline = _outline(s, prop, ismath).transformed(turned)
        paint = " ".join(_paint("fill", gc.get_rgb(), _alpha(gc)))
        self._place(gc, paint, outline, np.array([[x, y]]))

    def _downwards(self) -> Affine2D:
        return Affine2D().scale(1, -1).translate(0, self._size[1])

    def _style(self, gc: GraphicsContextBase, face: Any) -> str:
        alpha = _alpha(gc)
        attributes = _paint("fill", face, alpha)
        color, width = gc.get_rgb(), gc.get_linewidth()
        if width and (len(color) < 4 or color[3]):
            attributes += _paint("stroke", color, alpha)
            attributes += [f'stroke-width="{self._length(width)}"']
            dashes: Any = gc.get_dashes()
            if dashes[1]:
                lengths = " ".join(map(self._length, dashes[1]))
                attributes += [f'stroke-dasharray="{lengths}"']
                attributes += [f'stroke-dashoffset="{self._length(dashes[0])}"'] * bool(dashes[0])
            attributes += [f'stroke-linecap="{_CAPS[gc.get_capstyle()]}"']
            attributes += [f'stroke-linejoin="{gc.get_joinstyle()}"']
        return " ".join(attributes)

    def _hatch(self, gc: GraphicsContextBase) -> str:
        side = int(self._dpi)  # the raster backend's tiles: whole pixels, from the upper left on
        lines: Any = gc.get_hatch_path()
        (x, y), data = path_data(
            lines.transformed(Affine2D().scale(side, -side).translate(0, side))
        )
        color, width = gc.get_hatch_color(), self._length(gc.get_hatch_linewidth())
        attributes = [*_paint("fill", color, None), *_paint("stroke", color, None)]
        style = " ".join([*attributes, f'stroke-width="{width}" stroke-linecap="square"'])
        tile = (side * UNITS, f"M{round(x * UNITS)} {round(y * UNITS)}{data}", style)
        return f'fill="url(#hatch{self.shapes.hatches.number(tile)})"'

    def _length(self, points: float) -> str:
        return f"{self.points_to_pixels(points) * UNITS:.4g}"

    def _clip(self, gc: GraphicsContextBase) -> int:
        if gc.get_clip_path()[0] is not None:
            raise NotImplementedError("only rectangles clip a figure of this package")
        box = gc.get_clip_rectangle()
        if box is None:
            return -1
        x, y, width, height = (round(number * UNITS) for number in box.bounds)
        return self.shapes.clips.number((x, self._size[1] * UNITS - y - height, width, height))

    def _place(
        self, gc: GraphicsContextBase, style: str, path: Path, places: Any = ((0, 0),)
    ) -> None:
        start, data = path_data(path)
        if data:
            shapes, points = self.shapes, np.rint((places + start) * UNITS).astype(int)
            shape = (shapes.paths.number(data), shapes.styles.number(style), self._clip(gc))
            self._members.append(shapes.marks.number((*shape, *points.ravel().tolist())))


class _Canvas(FigureCanvasBase):
    """Makes layout ask the recorder, which remembers the sizes of texts from figure to figure."""

    def __init__(self, figure: Figure, recorder: Recorder) -> None:
        super().__init__(figure)
        self._recorder = recorder

    def get_renderer(self) -> Recorder:
        return self._recorder


_CAPS = {"butt": "butt", "round": "round", "projecting": "square"}


def _alpha(gc: GraphicsContextBase) -> float | None:
    return gc.get_alpha() if gc.get_forced_alpha() else None


def _paint(what: str, color: Any, alpha: float | None) -> list[str]:
    if color is None:
        return [f'{what}="none"']
    opacity = alpha if alpha is not None else color[3] if len(color) == 4 else 1.0
    attributes = [f'{what}="{to_hex(color)}"']
    return attributes if opacity == 1 else [*attributes, f'{what}-opacity="{opacity:.3g}"']


@lru_cache(maxsize=4096)
def _outline(s: str, prop: FontProperties, ismath: Any) -> Path:
    vertices, codes = text_to_path.get_text_path(prop, s, ismath)
    return Path(np.reshape(vertices, (-1, 2)), codes)

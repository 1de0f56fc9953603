"""Matplotlib figures to PNG, drawing axes, ticks and labels once while only the data move."""

from __future__ import annotations

import struct
import zlib
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from numpy.typing import NDArray

WIDTH = 680  # CSS pixels, the width of a text column
DENSITY = 2  # picture pixels per CSS pixel, sharp on a high-density screen
FRAMES_KEPT = 6  # of 3 to 5 MB


class _Frame(NamedTuple):
    positions: list[Any]  # of the axes, as the layout engine placed them
    pixels: Any  # everything that stands still


class Renderer:
    """Renders the figures of one draw function.

    Ticks, labels and legends take most of the time that matplotlib needs for a small figure. A
    figure that has these in common with an earlier one gets their pixels from there, and only its
    lines, areas and texts are drawn, above them.
    """

    def __init__(self) -> None:
        self._frames: dict[Any, _Frame] = {}
        self._canvas = FigureCanvasAgg(Figure())  # one for all, as it remembers the sizes of texts

    def png(self, figure: Figure, level: int = 1) -> bytes:
        """Render a figure to a PNG of WIDTH * DENSITY pixels across.

        Args:
            figure: as a draw function returns it; it is used up.
            level: of compression, from 1 (fast, for a slider) to 9 (small, for a file).
        """
        figure.set_dpi(WIDTH * DENSITY / figure.get_figwidth())
        self._canvas.figure = figure
        figure.set_canvas(self._canvas)
        data = {ax: _data_artists(ax) for ax in figure.axes}
        key = _frame_key(figure)
        if key not in self._frames:
            if len(self._frames) >= FRAMES_KEPT:
                del self._frames[next(iter(self._frames))]
            self._frames[key] = self._draw_frame(figure, data)
        positions, pixels = self._frames[key]
        for ax, position in zip(figure.axes, positions, strict=True):
            ax.set_position(position)
        renderer = self._canvas.get_renderer()
        renderer.restore_region(pixels)
        for artists in data.values():
            for artist in artists:
                artist.draw(renderer)
        return _encode(np.asarray(renderer.buffer_rgba()), level)

    def _draw_frame(self, figure: Figure, data: dict[Axes, list[Artist]]) -> _Frame:
        if engine := figure.get_layout_engine():
            engine.execute(figure)
        positions = [ax.get_position() for ax in figure.axes]
        figure.set_layout_engine("none")
        for artists in data.values():
            for artist in artists:
                artist.set_animated(True)  # left out of the drawing that follows
        self._canvas.draw()
        return _Frame(positions, self._canvas.copy_from_bbox(figure.bbox))


def _data_artists(ax: Axes) -> list[Artist]:
    """List what moves with the data, in drawing order."""
    still = (ax.xaxis, ax.yaxis, ax.patch, ax.title)
    moving = (a for a in ax.get_children() if a not in still and not _stays(a))
    return sorted(moving, key=Artist.get_zorder)


def _stays(artist: Artist) -> bool:
    """Whether it is a legend with a place of its own, not one that looks for room in the data."""
    return isinstance(artist, Legend) and artist._loc != 0  # type: ignore[attr-defined]


def _frame_key(figure: Figure) -> Any:
    """Collect what a frame shows: equal keys, equal pixels."""
    of_axes = (
        (ax.get_title(), _axis_key(ax.xaxis), _axis_key(ax.yaxis), _legend_key(ax.get_legend()))
        for ax in figure.axes
    )
    return (tuple(figure.get_size_inches()), *of_axes)


def _axis_key(axis: Axis) -> Any:
    return (
        tuple(axis.get_view_interval()),
        axis.get_scale(),
        axis.get_label_text(),
        tuple(axis.get_majorticklocs()),
        type(axis.get_minor_locator()),
        tuple(getattr(axis.get_major_formatter(), "seq", ())),
    )


def _legend_key(legend: Legend | None) -> Any:
    if legend is None or not _stays(legend):
        return None
    looks = map(_look, legend.legend_handles)
    return tuple(
        (text.get_text(), *look) for text, look in zip(legend.get_texts(), looks, strict=True)
    )


def _look(handle: Any) -> tuple[Any, ...]:
    if isinstance(handle, Line2D):
        return handle.get_color(), handle.get_linestyle(), handle.get_marker()
    return str(handle.get_facecolor()), handle.get_hatch()


def _encode(rgba: NDArray[np.uint8], level: int) -> bytes:
    """Write a PNG without filters on its rows, which take long and do not help line art."""
    height, width, _ = rgba.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # the first byte of a row: no filter
    pixels = rows[:, 1:].reshape(height, width, 3)
    for channel in range(3):  # one by one is four times faster
        pixels[:, :, channel] = rgba[:, :, channel]
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits each of R, G, B
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.data, level)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )

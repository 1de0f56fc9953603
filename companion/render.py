"""Matplotlib figures to PNG, drawing axes, ticks and labels once while only the data move."""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

WIDTH = 680  # CSS pixels, the width of a text column
DENSITY = 2  # picture pixels per CSS pixel, sharp on a high-density screen
FRAMES_KEPT = 8


class _Frame(NamedTuple):
    positions: list[Any]  # of the axes, as the layout engine placed them
    pixels: Any  # everything but the data


class Renderer:
    """Renders the figures of one draw function.

    Ticks and labels take most of the time that matplotlib needs for a small figure. A figure whose
    axes have the same limits, labels and ticks as an earlier one gets the pixels of that one, and
    only its lines, areas, texts and legends are drawn.
    """

    def __init__(self) -> None:
        self._frames: dict[Any, _Frame] = {}

    def png(self, figure: Figure, compression: int = 1) -> bytes:
        """Render a figure to a PNG of WIDTH * DENSITY pixels across.

        Args:
            figure: as a draw function returns it; it is used up.
            compression: 1 (fast, for a slider) to 9 (small, for a file).
        """
        figure.set_dpi(WIDTH * DENSITY / figure.get_figwidth())
        canvas = FigureCanvasAgg(figure)
        data = {ax: _data_artists(ax) for ax in figure.axes}
        key = _frame_key(figure)
        if key not in self._frames:
            if len(self._frames) >= FRAMES_KEPT:
                del self._frames[next(iter(self._frames))]
            self._frames[key] = _draw_frame(figure, canvas, data)
        frame = self._frames[key]
        figure.set_layout_engine("none")
        for ax, position in zip(figure.axes, frame.positions, strict=True):
            ax.set_position(position)
        renderer = canvas.get_renderer()
        renderer.restore_region(frame.pixels)
        for ax, artists in data.items():
            for artist in artists:
                ax.draw_artist(artist)
        return _encode(canvas, compression)


def _data_artists(ax: Axes) -> list[Artist]:
    """List what moves with the data, in drawing order."""
    still = (ax.xaxis, ax.yaxis, ax.patch)
    return sorted((a for a in ax.get_children() if a not in still), key=Artist.get_zorder)


def _frame_key(figure: Figure) -> Any:
    def of_axis(ax: Axes, which: str) -> Any:
        axis = getattr(ax, f"{which}axis")
        formatter = axis.get_major_formatter()
        return (
            getattr(ax, f"get_{which}lim")(),
            axis.get_scale(),
            axis.get_label_text(),
            tuple(axis.get_majorticklocs()),
            type(axis.get_minor_locator()),
            tuple(getattr(formatter, "seq", ())),
        )

    return (
        tuple(figure.get_size_inches()),
        *((ax.get_title(), of_axis(ax, "x"), of_axis(ax, "y")) for ax in figure.axes),
    )


def _draw_frame(figure: Figure, canvas: FigureCanvasAgg, data: dict[Axes, list[Artist]]) -> _Frame:
    figure.draw_without_rendering()
    positions = [ax.get_position() for ax in figure.axes]
    figure.set_layout_engine("none")
    for artists in data.values():
        for artist in artists:
            artist.set_animated(True)  # left out of the drawing that follows
    canvas.draw()
    return _Frame(positions, canvas.copy_from_bbox(figure.bbox))


def _encode(canvas: FigureCanvasAgg, compression: int) -> bytes:
    buffer = io.BytesIO()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    picture.save(buffer, format="png", compress_level=compression)
    return buffer.getvalue()

"""The controls of a live figure, its picture and its numbers, as one widget."""

from __future__ import annotations

import base64
import gc
import html
import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import ipywidgets as widgets

from companion.drawing import Choice, Drawing, LiveFigure, Slider
from companion.render import WIDTH, Renderer

LETTER = 0.56  # em, of a wide letter
PICTURES_KEPT = 32  # of a tenth of a megabyte each

# ipywidgets gives the handle of a slider neither a name nor, on a log scale, its value; a picture
# that has arrived can.
NAME_SLIDERS = """const panel = this.closest('.widget-vbox');
for (const handle of panel.querySelectorAll('[role=slider]')) {
  const row = handle.closest('.widget-hbox');
  handle.setAttribute('aria-label', row.querySelector('label').textContent);
  handle.setAttribute('aria-valuetext', row.querySelector('input, select').value);
}"""


class Panel:
    """A live figure as a widget, `box`; a move of a control draws once, in place.

    Of moves that come while it draws, the browser sends the last one only.
    """

    def __init__(self, figure: LiveFigure, write: Callable[[Any], str]) -> None:
        """Draw the figure at its start.

        Args:
            figure: the live figure.
            write: how one of the numbers beside the picture is written.
        """
        _freeze_imports()
        self.figure = figure
        self.write = write
        self.renderer = Renderer()
        self.content = lru_cache(PICTURES_KEPT)(self._content)  # who compares moves back and forth
        self.height = 0.0  # of the last picture, in CSS pixels
        letters = max(len(_label(control)) for control in figure.controls.values())
        self.controls = {
            keyword: _Control(control, letters) for keyword, control in figure.controls.items()
        }
        reset = widgets.Button(description="Reset", tooltip="Back to the first setting")
        reset.on_click(lambda _: self.reset())
        rows = [control.row for control in self.controls.values()]
        self.view = widgets.HTML()
        self.box = widgets.VBox([*rows, reset, self.view])
        self.watch(True)
        self.redraw()

    def watch(self, on: bool) -> None:
        """Draw whenever a control changes its value, or do not."""
        for control in self.controls.values():
            (control.box.observe if on else control.box.unobserve)(self.redraw, names="value")

    def parameters(self) -> dict[str, float | str]:
        """Return the present setting of every control."""
        return {keyword: control.box.value for keyword, control in self.controls.items()}

    def redraw(self, _: object = None) -> None:
        """Draw at the present setting; an error takes the place of the picture."""
        try:
            self.view.value, self.height = self.content(*self.parameters().values())
        except Exception as error:
            message = html.escape(f"{type(error).__name__}: {error}")
            self.view.value = (
                f'<pre role="alert" style="min-height: {self.height:.0f}px; white-space: pre-wrap">'
                f"{message}</pre>"
            )

    def reset(self) -> None:
        """Put every control back to its start, drawing once."""
        self.watch(False)
        for keyword, start in self.figure.defaults().items():
            self.controls[keyword].box.value = start
        self.watch(True)
        self.redraw()

    def _content(self, *setting: float | str) -> tuple[str, float]:
        """Draw a setting; return picture and numbers in HTML, and the height in CSS pixels."""
        drawing = self.figure.draw(**dict(zip(self.controls, setting, strict=True)))
        height = WIDTH * drawing.figure.get_figheight() / drawing.figure.get_figwidth()
        return self._picture(drawing, height) + self._table(drawing), height

    def _picture(self, drawing: Drawing, height: float) -> str:
        data = base64.b64encode(self.renderer.png(drawing.figure)).decode("ascii")
        # Given both sides, the browser keeps the place; decoded at once, nothing flashes.
        return (
            f'<img src="data:image/png;base64,{data}" alt="{html.escape(drawing.alt)}"'
            f' width="{WIDTH}" height="{height:.0f}" decoding="sync"'
            f' style="display: block; max-width: 100%; height: auto" onload="{NAME_SLIDERS}">'
        )

    def _table(self, drawing: Drawing) -> str:
        rows = "".join(
            f'<tr><th scope="row" style="{_CELL}">{html.escape(name)}</th>'
            f'<td style="{_CELL}">{html.escape(self.write(value))}</td></tr>'
            for name, value in drawing.numbers.items()
        )
        return f'<table style="{_TABLE}"><tbody>{rows}</tbody></table>'


@cache
def _freeze_imports() -> None:
    """Exempt what is imported by now from garbage collection, which would stop a move for 0.4 s."""
    gc.collect()
    gc.freeze()


# Digits of one width keep a changing number from moving what is beside it.
_TABLE = (
    "margin: 0.5em 0; border-collapse: collapse; line-height: 1.6;"
    " font-variant-numeric: tabular-nums"
)
_CELL = "padding: 0.1em 1.5em 0.1em 0; text-align: left; font-weight: normal; vertical-align: top"


class _Control:
    """One labelled row of a panel: a box, whose `value` counts, and a slider that follows it.

    JupyterLab keeps the arrow keys from everything but sliders, so a choice has one too.
    """

    def __init__(self, control: Slider | Choice, letters: int) -> None:
        width = f"{letters * LETTER:.1f}em"
        self.box = _box(
            control,
            description=_label(control),
            style={"description_width": width},
            layout={"width": f"calc({width} + 8em)", "flex": "0 0 auto"},
        )
        self.slider = _slider(control)
        self.row = widgets.HBox(
            [self.box, self.slider], layout={"flex_flow": "row wrap", "max_width": f"{WIDTH}px"}
        )
        self.control = control
        self.stop: Any = control.start  # of the slider; a typed number may lie between two
        self.slider.observe(self._moved, names="value")
        self.box.observe(self._set, names="value")

    def _moved(self, _: object) -> None:
        stop = rounded(self.slider.value)
        if stop != self.stop:
            self.stop = stop
            self.box.value = stop

    def _set(self, _: object) -> None:
        stop = nearest_stop(self.control, self.box.value)
        if stop != self.stop:
            self.stop = stop
            self.slider.value = stop


def rounded(value: Any) -> Any:
    """Round to six digits, as the grid of a slider is: 0.15, where steps add up to 0.1500...02."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def nearest_stop(control: Slider | Choice, value: Any) -> Any:
    """Return where a slider stands for a value in its range."""
    if isinstance(control, Choice):
        return value
    scale = math.log if control.log else float
    return min([*control.grid(), control.high], key=lambda stop: abs(scale(stop) - scale(value)))


def _label(control: Slider | Choice) -> str:
    return f"{control.symbol}  {control.name}"


def _box(control: Slider | Choice, **look: Any) -> Any:
    if isinstance(control, Choice):
        return widgets.Dropdown(options=control.options, value=control.start, **look)
    kind = widgets.BoundedIntText if control.whole else widgets.BoundedFloatText
    return kind(control.start, min=control.low, max=control.high, **look)


def _slider(control: Slider | Choice) -> Any:
    look: dict[str, Any] = {
        "value": control.start,
        "readout": False,
        "layout": {"width": "auto", "flex": "1 1 12em"},
    }
    if isinstance(control, Choice):
        return widgets.SelectionSlider(options=control.options, **look)
    look["step"] = control.step
    if control.log:
        low, high = math.log10(control.low), math.log10(control.high)
        return widgets.FloatLogSlider(min=low, max=high, **look)
    kind = widgets.IntSlider if control.whole else widgets.FloatSlider
    return kind(min=control.low, max=control.high, **look)

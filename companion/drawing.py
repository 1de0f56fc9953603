"""What a live figure is: a draw function, and the parameters that a reader can move."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Drawing(NamedTuple):
    """What a draw function returns for one setting of its parameters.

    figure: a matplotlib figure that pyplot does not know of, so that none stays open.
    numbers: what is read beside the figure, name to value: the two sides of a theorem, say.
    alt: one or two sentences that say what the picture shows, with its numbers.
    """

    figure: Figure
    numbers: Mapping[str, float | str]
    alt: str


@dataclass(frozen=True)
class Slider:
    """A number that a reader moves.

    Raises:
        ValueError: start, low, high and step that do not fit together.
    """

    symbol: str  # as in the text, one character or a short word
    name: str  # in words, with the unit if there is one
    start: float
    low: float
    high: float
    step: float  # between neighbours; on a log scale, in powers of ten
    log: bool = False
    whole: bool = False  # only whole numbers

    def __post_init__(self) -> None:
        if not self.low <= self.start <= self.high or self.low == self.high:
            raise ValueError(f"start must lie in [low, high]; got {self}")
        if self.step <= 0 or (self.log and self.low <= 0):
            raise ValueError(f"step, and low on a log scale, must be above 0; got {self}")

    def grid(self) -> list[float]:
        """List the values that the slider stops at, low to high."""
        low, high = (np.log10(self.low), np.log10(self.high)) if self.log else (self.low, self.high)
        stops = low + self.step * np.arange(round((high - low) / self.step) + 1)
        values = 10.0**stops if self.log else stops
        return [int(x) if self.whole else float(f"{x:.6g}") for x in values]


@dataclass(frozen=True)
class Choice:
    """One of a few named settings that a reader picks.

    Raises:
        ValueError: start is not one of the options.
    """

    symbol: str
    name: str
    start: str
    options: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.start not in self.options:
            raise ValueError(f"start must be one of {self.options}; got {self.start!r}")


Draw = Callable[..., Drawing]


@dataclass(frozen=True)
class LiveFigure:
    """A draw function with the controls of its keyword parameters."""

    draw: Draw
    controls: Mapping[str, Slider | Choice]

    def defaults(self) -> dict[str, float | str]:
        """Return the setting that the printed page shows."""
        return {keyword: control.start for keyword, control in self.controls.items()}

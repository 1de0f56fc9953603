"""What a reader sees: claims with their measurement, tables, pictures and sliders."""

from __future__ import annotations

import base64
import json
import numbers
import re
import textwrap
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from IPython.display import display

from companion.drawing import Drawing, LiveFigure
from companion.interval import Estimate
from companion.mirror_example import NEGLIGIBLE
from companion.panel import Panel
from companion.render import WIDTH, Renderer


class ClaimFailed(AssertionError):
    """A statement of the chapter did not hold in the measurement made of it."""


def printed(experiment: str) -> Any:
    """Return the figures that the chapter prints, as the strings that it prints.

    Args:
        experiment: bandit, trpo, mirror, ablation or step.

    Raises:
        KeyError: no such experiment.
    """
    text = resources.files("companion").joinpath("printed.json").read_text(encoding="utf-8")
    figures: dict[str, Any] = json.loads(text)
    if experiment not in figures:
        raise KeyError(f"experiment must be one of {sorted(figures)}; got {experiment!r}")
    return figures[experiment]


def number(value: float | str | Estimate) -> str:
    """Write a number with four digits, rounding error as such, an estimate with its interval.

    A float of 0 is written as rounding error too: another machine may have rounded it otherwise.

    >>> number(0.123456), number(3e-16), number(1234), number(Estimate(0.5, 0.25, 0.75))
    ('0.1235', '< 1e-12', '1,234', '0.5 [0.25, 0.75]')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Estimate):
        return f"{number(value.value)} [{number(value.low)}, {number(value.high)}]"
    if isinstance(value, numbers.Integral):
        return f"{int(value):,}"
    return "< 1e-12" if abs(value) <= NEGLIGIBLE else f"{value:.4g}"


def claim(
    statement: str,
    what: str,
    measured: float | str | Estimate,
    relation: str,
    held_against: float | str | tuple[float, float],
) -> None:
    """Hold a statement of the chapter against its measurement, and print one line of it.

    Args:
        statement: the statement's ID.
        what: what was measured, in a few words.
        measured: the number; of an Estimate the whole interval must satisfy the relation.
        relation: "<=", "<", ">=", ">", "==", or "in" for an interval (low, high), ends included.
        held_against: the number, string or interval that the statement requires.

    Raises:
        ClaimFailed: the statement does not hold; the message is the line.
        ValueError: another relation.
    """
    ends = measured[1:] if isinstance(measured, Estimate) else (measured,)
    holds = all(_holds(end, relation, held_against) for end in ends)
    against = (
        f"[{held_against[0]:.4g}, {held_against[1]:.4g}]"
        if isinstance(held_against, tuple)
        else held_against
        if isinstance(held_against, str)
        else f"{held_against:.4g}"
    )
    line = f"{statement} | {what} | {number(measured)} | {relation} {against}"
    if not holds:
        raise ClaimFailed(f"{line} | does not hold")
    print(f"{line} | holds")


def _holds(x: Any, relation: str, bound: Any) -> bool:
    tests = {
        "<=": lambda: x <= bound,
        "<": lambda: x < bound,
        ">=": lambda: x >= bound,
        ">": lambda: x > bound,
        "==": lambda: x == bound,
        "in": lambda: bound[0] <= x <= bound[1],
    }
    if relation not in tests:
        raise ValueError(f"relation must be one of {', '.join(tests)}; got {relation!r}")
    return bool(tests[relation]())


def table(header: Sequence[str], rows: Sequence[Sequence[float | str | Estimate]]) -> None:
    """Print a table with its columns aligned: words to the left, numbers to the right.

    Args:
        header: column names.
        rows: one sequence a row, each as long as the header.

    Raises:
        ValueError: a row of another length.
    """
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"rows must have {len(header)} entries as the header has; got {row}")
    cells = [list(header)] + [[number(entry) for entry in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    is_word = [not re.search("[0-9]", "".join(column)) for column in zip(*cells[1:], strict=True)]
    for row in cells:
        aligned = [
            c.ljust(w) if left else c.rjust(w)
            for c, w, left in zip(row, widths, [True, *is_word[1:]], strict=True)
        ]
        print("  ".join(aligned).rstrip())


def matching(ours: Sequence[str], printed: Sequence[str]) -> str:
    """Count the entries that equal the printed ones, as "60 of 60"."""
    return f"{sum(a == b for a, b in zip(ours, printed, strict=True))} of {len(printed)}"


def picture(drawing: Drawing) -> None:
    """Display a drawing as a picture with its numbers, for a page without a kernel too."""
    display(_static(drawing), metadata=_METADATA, raw=True)


def live(figure: LiveFigure) -> None:
    """Display a figure with a control for each of its parameters.

    Where there is no kernel, the same output holds the picture and the numbers at the defaults.
    """
    view = Panel(figure, number).box._repr_mimebundle_()
    fallback = _static(figure.draw(**figure.defaults()))
    display(view | fallback, metadata=_METADATA, raw=True)


def _aligned(numbers: Mapping[str, float | str]) -> str:
    width = max(map(len, numbers), default=0)
    return "\n".join(f"{name:<{width}}  {number(value)}" for name, value in numbers.items())


def _static(drawing: Drawing) -> dict[str, Any]:
    text = textwrap.fill(drawing.alt, width=96)
    png = Renderer().png(drawing.figure, level=9)
    return {
        "image/png": base64.b64encode(png).decode("ascii"),
        "text/plain": "\n".join(filter(None, [text, _aligned(drawing.numbers)])),
    }


_METADATA = {"image/png": {"width": WIDTH}}

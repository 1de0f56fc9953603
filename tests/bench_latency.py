"""How long a key press takes to change the picture, against ipywidgets' own `interact`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from companion.drawing import LiveFigure, Slider
from tests.browser import chromium
from tests.figure_data import live_figures
from tests.lab import LabNotebook, serve, write_notebook

PRESSES = 15
STEPS = 5  # away from the start before turning back
BASELINE = """from ipywidgets import interact
from matplotlib import pyplot as plt

@interact(x=(0.0, 100.0, 0.25))
def line(x=50.0):
    plt.plot([0, x])
    plt.show()
"""


def rows(only: str = "") -> Iterator[tuple[str, str, float, float, float]]:
    """Press keys on every slider, in turns with a slider of `interact`.

    Args:
        only: what the names of the figures to measure contain.

    Yields:
        Figure, slider, its median time in ms, that over the median of `interact`, and the same for
        the settings that had not been seen before.
    """
    figures = {name: figure for name, figure in sorted(live_figures().items()) if only in name}
    cells = [BASELINE, *map(shown, figures)]
    with tempfile.TemporaryDirectory() as directory:
        write_notebook(Path(directory, "figures.ipynb"), cells)
        with serve(Path(directory)) as address, chromium() as browser:
            notebook = LabNotebook(browser, address, "figures.ipynb")
            notebook.run(0)
            for position, (name, figure) in enumerate(figures.items(), 1):
                notebook.run(position)
                for keyword, ours, theirs, new in times(notebook, position, figure):
                    usual = median(theirs)
                    yield name, keyword, median(ours), median(ours) / usual, median(new) / usual


def shown(name: str) -> str:
    """Return the code of a cell that shows a figure."""
    module, constant = name.split(".")
    return f"""from companion.figures import {module}
from companion.show import live
live({module}.{constant})"""


def times(
    notebook: LabNotebook, position: int, figure: LiveFigure
) -> Iterator[tuple[str, list[float], list[float], list[float]]]:
    """Yield each slider with its times, those of the baseline and those at new settings, in ms."""
    for order, (keyword, control) in enumerate(figure.controls.items()):
        if isinstance(control, Slider):
            ours, theirs = [], []
            for key in keys(control):
                theirs.append(press(notebook, 0, 0, key))
                ours.append(press(notebook, position, order, key))
            # The first press of each warms up.
            yield keyword, ours[1:], theirs[1:], ours[1 : steps(control)] or ours[:1]


def keys(slider: Slider) -> Iterator[str]:
    """Yield one key more than counts: away from the start, where there is room, and back."""
    below, above = room(slider)
    for count in range(PRESSES + 1):
        away = count // steps(slider) % 2 == 0
        yield "ArrowRight" if away is (above >= below) else "ArrowLeft"


def steps(slider: Slider) -> int:
    """Return after how many presses the way turns."""
    return min(STEPS, max(room(slider)))


def room(slider: Slider) -> tuple[int, int]:
    """Return how many stops lie below the start and above."""
    grid = slider.grid()
    start = grid.index(slider.start)
    return start, len(grid) - 1 - start


def press(notebook: LabNotebook, position: int, order: int, key: str) -> float:
    """Press a key on one slider of a cell and wait for the picture; returns ms."""
    handle = notebook.cell(position).get_by_role("slider").nth(order)
    handle.focus()
    notebook.watch(position)
    notebook.page.keyboard.press(key)
    taken = notebook.milliseconds()
    notebook.wait_idle()
    return taken


def main() -> None:
    """Print the table."""
    print(f"{'figure':<28}{'slider':<20}{'median':>10}{'of interact':>14}{'if new':>9}")
    for name, keyword, milliseconds, ratio, new in rows(*sys.argv[1:]):
        print(
            f"{name:<28}{keyword:<20}{milliseconds:>7.0f} ms{ratio:>14.2f}{new:>9.2f}", flush=True
        )


if __name__ == "__main__":
    main()

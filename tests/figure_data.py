"""The data that every figure plots at its defaults, stored so that a changed curve is noticed.

`python tests/figure_data.py` stores the present data in tests/figure_data.json; the difference that
git then shows is what a reviewer has to agree to.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

import companion.figures
from companion.drawing import LiveFigure

STORE = Path(__file__).with_suffix(".json")


def live_figures() -> dict[str, LiveFigure]:
    """Find every live figure of the package, by module and name."""
    found = {}
    for info in pkgutil.iter_modules(companion.figures.__path__):
        module = importlib.import_module(f"companion.figures.{info.name}")
        for name, value in vars(module).items():
            if isinstance(value, LiveFigure):
                found[f"{info.name}.{name}"] = value
    return found


def plotted(figure: Figure) -> dict[str, list[float]]:
    """Collect the coordinates of every line, marker, bar and filled area of a figure."""
    data: dict[str, Any] = {}
    for i, ax in enumerate(figure.axes):
        for j, line in enumerate(ax.lines):
            data[f"axes {i} line {j}"] = line.get_xydata()
        for j, patch in enumerate(ax.patches):
            data[f"axes {i} patch {j}"] = patch.get_patch_transform().transform(
                patch.get_path().vertices
            )
        for j, collection in enumerate(ax.collections):
            if isinstance(collection, PathCollection):
                data[f"axes {i} markers {j}"] = collection.get_offsets()
            else:
                paths = [path.vertices for path in collection.get_paths()]
                data[f"axes {i} area {j}"] = np.concatenate(paths) if paths else np.empty(0)
    return {
        name: [float(f"{x:.9g}") for x in np.ma.filled(xy, np.nan).ravel()]
        for name, xy in data.items()
    }


def main() -> None:
    """Store the data of all figures."""
    data = {
        name: plotted(figure.draw(**figure.defaults()).figure)
        for name, figure in sorted(live_figures().items())
    }
    lines = ",\n".join(
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in parts.items())
        + "\n}"
        for name, parts in data.items()
    )
    STORE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

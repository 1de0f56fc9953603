"""Matplotlib paths as SVG path data in whole numbers, relative to where a path starts."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.path import Path
from numpy.typing import NDArray

UNITS = 4  # to a picture pixel, an eighth of a CSS pixel: coordinates are whole numbers of units

_PER_SEGMENT = {Path.LINETO: ("l", 1), Path.CURVE3: ("q", 2), Path.CURVE4: ("c", 3)}


def path_data(path: Path) -> tuple[NDArray[np.float64], str]:
    """Return where a path starts, and SVG path data relative to there, in whole units.

    >>> start, data = path_data(Path([[1, 2], [3, 2], [3, 5]]))
    >>> start.tolist(), data
    ([1.0, 2.0], 'l8 0 0 12')
    """
    vertices = np.asarray(path.vertices)
    start = vertices[0] if len(vertices) else np.zeros(2)
    # Rounded from the start on, so that a shape is the same wherever it stands.
    points = np.rint((vertices - start) * UNITS).astype(np.int64)
    codes: Any = path.codes
    if codes is None:
        codes = [Path.MOVETO] + [Path.LINETO] * len(points)
    position = 0
    parts: list[str] = []
    subpath = here = np.zeros(2, np.int64)
    for code, run in groupby(codes[: len(points)]):
        some = points[position : position + len(list(run))]
        position += len(some)
        if code == Path.MOVETO:
            parts.append(_numbers("m", some[-1] - here) if parts else "")
            subpath = here = some[-1]
        elif code == Path.CLOSEPOLY:
            parts.append("z")
            here = subpath
        elif code != Path.STOP:
            letter, per_segment = _PER_SEGMENT[code]
            segments = some.reshape(-1, per_segment, 2)
            starts = np.concatenate([[here], segments[:-1, -1]])
            parts.append(_numbers(letter, segments - starts[:, None]))
            here = some[-1]
    return start, "".join(parts)


def _numbers(letter: str, numbers: NDArray[np.int64]) -> str:
    return letter + " ".join(map(str, numbers.ravel().tolist())).replace(" -", "-")

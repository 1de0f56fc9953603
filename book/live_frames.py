"""The live figures that notebooks show, and the scripts that hold their frames.

The frames of a figure are kept in build/frames until what they are drawn from changes.
"""

import ast
import hashlib
import os
import pkgutil
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from sections import ROOT, code_cells

import companion
from companion import frames
from companion.drawing import LiveFigure

KEPT = ROOT / "build" / "frames"
FIGURES = "companion.figures."
# What a frame is drawn from: code and data of the package, and the versions of what it computes by.
SOURCES = ("*.py", "*.json", "compiled/*.py", "figures/*.py", "data/*.npz")
LIBRARIES = ("matplotlib", "numba", "numpy", "scipy", "torch")


class Shown(NamedTuple):
    """A live figure in a notebook's cell; its name is module.NAME, under companion.figures."""

    cell: str
    name: str


def shown(notebook: Any) -> list[Shown]:
    """The live figures of a notebook, in order: what its cells give to `live`."""
    names: dict[str, str] = {}
    found = []
    for cell in code_cells(notebook):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(FIGURES):
                for alias in node.names:
                    names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "live":
                first, dot, rest = ast.unparse(node.args[0]).partition(".")
                found.append(Shown(cell.id, (names[first] + dot + rest).removeprefix(FIGURES)))
    return found


def live_figure(name: str) -> LiveFigure:
    """The figure of this name."""
    figure = pkgutil.resolve_name(FIGURES + name)
    assert isinstance(figure, LiveFigure)
    return figure


def drawn_from() -> str:
    """A hash of what frames are drawn from."""
    digest = hashlib.sha256("".join(map(metadata.version, LIBRARIES)).encode())
    package = Path(companion.__file__).parent
    for path in sorted(path for pattern in SOURCES for path in package.glob(pattern)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def record_all(names: Iterable[str]) -> dict[str, Path]:
    """The script with the frames of each figure, recorded again if the package has changed."""
    version = drawn_from()
    KEPT.mkdir(parents=True, exist_ok=True)
    scripts = {name: KEPT / f"{name}-{version}.js" for name in names}
    for path in set(KEPT.iterdir()) - set(scripts.values()):
        path.unlink()
    missing = {name: path for name, path in scripts.items() if not path.exists()}
    # The longest first, so that no process is left with it at the end.
    order = sorted(missing, key=lambda name: -len(frames.grid(live_figure(name)).settings()))
    with ProcessPoolExecutor(min(4, os.cpu_count() or 1), get_context("spawn")) as pool:
        for done in [pool.submit(record_one, name, missing[name]) for name in order]:
            print(done.result(), flush=True)
    return scripts


def record_one(name: str, path: Path) -> str:
    """Record one figure, in a process of its own; returns what to say of it."""
    start = time.perf_counter()
    text = frames.script(name, live_figure(name))
    partial = path.with_suffix(".part")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
    count = len(frames.grid(live_figure(name)).settings())
    return f"{name}: {count} frames, {len(text) / 1e3:.0f} kB, {time.perf_counter() - start:.0f} s"

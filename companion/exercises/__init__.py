"""The exercises' automatic parts: cases, what is right, and what is often wrong."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from companion.exercises.part import Part

EXERCISES = (
    *("20-1", "20-2", "20-3", "20-4", "20-5", "20-6", "20-7", "20-8"),
    *("further-1", "further-2", "further-3", "further-4"),
)

PARTS: dict[str, Part]  # every automatic part by its id, "20-1-a" and so on


def __getattr__(name: str) -> dict[str, Part]:
    # Read at first use: where a submission runs there is `own`, but no module with answers.
    if name != "PARTS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = [f"{__name__}.exercise_{exercise.replace('-', '_')}" for exercise in EXERCISES]
    every = [part for module in modules for part in importlib.import_module(module).PARTS]
    parts: dict[str, Part] = {part.id: part for part in every}
    globals()["PARTS"] = parts
    return parts

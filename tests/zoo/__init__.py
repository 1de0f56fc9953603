"""A zoo of answers as students write them: wrong ones by misconception, and right ones by style."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from companion.exercises import EXERCISES

Answer = Callable[..., Any]


class Animal(NamedTuple):
    """An answer to a part; for numbers, how they were computed from the own case."""

    part: str
    name: str  # of the misconception, or of the style
    answer: Answer


WRONG: list[Animal] = []
RIGHT: list[Animal] = []


def wrong(part: str, misconception: str) -> Callable[[Answer], Answer]:
    """Keep a wrong answer and the name that it must be given."""
    return _keep(WRONG, part, misconception)


def right(part: str, style: str) -> Callable[[Answer], Answer]:
    """Keep a right answer, differently written."""
    return _keep(RIGHT, part, style)


def _keep(animals: list[Animal], part: str, name: str) -> Callable[[Answer], Answer]:
    def keep(answer: Answer) -> Answer:
        animals.append(Animal(part, name, answer))
        return answer

    return keep


for module in [f"exercise_{exercise.replace('-', '_')}" for exercise in EXERCISES] + ["companions"]:
    importlib.import_module(f"{__name__}.{module}")

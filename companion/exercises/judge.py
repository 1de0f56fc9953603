"""Judge the values that an answer gave for its cases: right, or wrong and how."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from companion.exercises.part import Case, Part, agree, close, computed
from companion.policy import FloatArray

Status = Literal["not attempted", "right", "wrong"]
COLOUR = {"not attempted": "#666666", "right": "#0072b2", "wrong": "#d55e00"}


@dataclass(frozen=True, repr=False, eq=False)
class Verdict:
    """What is said of an answer, shown as one short paragraph."""

    part_id: str
    title: str
    status: Status
    message: str = ""
    misconception: str | None = None
    case: Case | None = None  # the inputs at which the answer went wrong, if these may be seen

    def __repr__(self) -> str:
        return f"{self.part_id} {self.title}: {self.status}. {self.message}".rstrip()

    def _repr_html_(self) -> str:
        name, message = (html.escape(text) for text in (self.title, self.message))
        return (
            f'<div style="border-left: 4px solid {COLOUR[self.status]}; padding: 2px 8px">'
            f"{self.part_id} {name}: <b>{self.status}</b>. {message}</div>"
        )


@np.errstate(all="ignore")  # a student's numbers may overflow
def judge(part: Part, cases: Sequence[Case], answers: Sequence[Any]) -> Verdict:
    """Compare an answer's values with the reference, and name the misconception behind them.

    Args:
        part: the part.
        cases: its cases.
        answers: what the answer gave for each, as floats or rectangular lists of floats.

    Returns:
        Verdict, right or wrong, which holds no expected value and no case.
    """
    values = [np.asarray(answer, dtype=np.float64) for answer in answers]
    expected = [computed(part.reference, case) for case in cases]
    right = [close(value, target) for value, target in zip(values, expected, strict=True)]
    if all(right):
        return Verdict(part.id, part.title, "right")
    for m in part.misconceptions:
        wrong = (computed(m.wrong, case) for case in cases)
        if all(close(value, target) for value, target in zip(values, wrong, strict=True)):
            message = f"It looks like this: {m.name}. {m.message}"
            return Verdict(part.id, part.title, "wrong", message, m.name)
    k = right.index(False)
    where = f"In case {k + 1} of {len(cases)} " if len(cases) > 1 else ""
    message = f"{where}{_difference(part, values[k], expected[k])}."
    return Verdict(part.id, part.title, "wrong", message[0].upper() + message[1:])


@np.errstate(all="ignore")
def first_difference(part: Part, cases: Sequence[Case], answers: Sequence[Any]) -> Case:
    """Return the first case in which an answer's value is not that of the reference."""
    for case, answer in zip(cases, answers, strict=True):
        if not close(np.asarray(answer, dtype=np.float64), computed(part.reference, case)):
            return case
    raise ValueError("the answer differs in no case")


def _difference(part: Part, value: FloatArray, expected: FloatArray) -> str:
    """Say how a value differs from what is expected, and nothing of what that is."""
    if value.shape != expected.shape:
        return f"the answer has {_kind(value.shape)}; {_kind(expected.shape)} is asked for"
    if not np.isfinite(value).all():
        return "the answer holds NaN or infinity (a division by zero, a logarithm of zero?)"
    if close(-value, expected):
        return "the answer has the opposite sign"
    scaled = value * ((value * expected).sum() / (value**2).sum())
    if value.size > 1 and close(scaled, expected):
        return "all entries are off by the same factor"
    if part.kind == "numbers":  # to be told larger or smaller would be enough to find them
        return _wrong_entries(~agree(value, expected))
    off = np.abs(value - expected)
    at = np.unravel_index(int(off.argmax()), off.shape)
    index = ", ".join(str(int(i)) for i in at)
    where = f"entry [{index}]" if index else "the answer"
    return f"{where} is too {'large' if value[at] > expected[at] else 'small'}"


def _wrong_entries(wrong: NDArray[np.bool_]) -> str:
    """Name the first wrong entry, counted as the tasks are, from 1; and say how many more are."""
    first, *more = np.argwhere(wrong)
    if wrong.ndim == 0:
        return "the answer is not right"
    if wrong.ndim > 1:
        where = f"entry [{', '.join(map(str, first))}]"
    else:
        where = f"the {_ordinal(int(first[0]) + 1)} entry"
    return f"{where} is not right" + (f", and {len(more)} more" if more else "")


def _ordinal(number: int) -> str:
    """Return 1st, 2nd and so on.

    >>> [_ordinal(number) for number in (1, 2, 3, 4, 11, 22)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd']
    """
    last = 0 if number % 100 in (11, 12, 13) else number % 10
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"


def _kind(shape: tuple[int, ...]) -> str:
    return f"shape {shape}" if shape else "a single number"

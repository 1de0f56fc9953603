"""Self-checks of the exercises: is an answer right, and if not, what is the likely mistake?"""

from __future__ import annotations

import dataclasses
import linecache
import traceback
from collections.abc import Callable
from typing import Any

from companion.exercises import EXERCISES, PARTS
from companion.exercises.judge import Verdict, first_difference, judge
from companion.exercises.own import PLACEHOLDER
from companion.exercises.part import Case, Part, arguments
from companion.exercises.plain import NotPlain, plain

REMINDER = f"These are nobody's numbers: write your own id in place of {PLACEHOLDER!r} above."


def check(part_id: str, answer: object, student: str) -> Verdict:
    """Check an answer on cases that belong to the student's id.

    The cases of the marking are others. What is right is never shown.

    Args:
        part_id: the part, such as "20-1-a".
        answer: the function asked for, or the numbers.
        student: the id that the student's own numbers derive from.

    Returns:
        Verdict with .status ("not attempted", "right" or "wrong"), .message, .misconception (a
        name, or None), and .case (the inputs at which the answer went wrong, or None).

    Raises:
        ValueError: no such part, or no student's id.

    >>> check("20-1-a", ..., "ada").status
    'not attempted'
    """
    if part_id not in PARTS:
        raise ValueError(_unknown(part_id))
    part = PARTS[part_id]
    verdict = _checked(part, answer, part.draw(student))
    if student.strip() == PLACEHOLDER:
        return dataclasses.replace(verdict, message=f"{verdict.message} {REMINDER}".strip())
    return verdict


def _unknown(part_id: str) -> str:
    """Say which parts the exercise has, or which exercises there are."""
    exercise = "-".join(str(part_id).replace(".", "-").split("-")[:2])
    if exercise in EXERCISES:
        parts = ", ".join(part for part in PARTS if part.startswith(f"{exercise}-"))
        return f"part_id must be one of {parts}; got {part_id!r}"
    return (
        f"part_id must be an exercise's name with a letter, such as '20-1-a'; got {part_id!r}; "
        f"the exercises are {', '.join(EXERCISES)}"
    )


def _checked(part: Part, answer: object, cases: list[Case]) -> Verdict:
    if answer is None or answer is ...:
        return Verdict(part.id, part.title, "not attempted")
    if part.kind == "numbers":
        return _verdict(part, cases, [answer])
    if not callable(answer):
        return Verdict(
            part.id, part.title, "wrong", f"{part.name} is not a function, but {type(answer)}."
        )
    return _check_function(part, answer, cases)


def _check_function(part: Part, answer: Callable[..., Any], cases: list[Case]) -> Verdict:
    values = []
    for case in cases:
        try:
            values.append(answer(**arguments(case)))
        except NotImplementedError:
            return Verdict(part.id, part.title, "not attempted")
        except (Exception, SystemExit) as error:
            message = f"The answer raised {type(error).__name__}: {error}{_line(error, answer)}"
            message = message if message.endswith((".", "!", "?")) else f"{message}."
            if type(error) is NameError:
                message += " Run the cells above first, and the answer's own."
            return Verdict(part.id, part.title, "wrong", message, case=arguments(case))
    return _verdict(part, cases, values)


def _verdict(part: Part, cases: list[Case], values: list[Any]) -> Verdict:
    if any(value is None or value is ... for value in values):
        return Verdict(part.id, part.title, "not attempted", f"{part.name} returns nothing yet.")
    try:
        answers = [plain(value) for value in values]
    except NotPlain as error:
        return Verdict(part.id, part.title, "wrong", f"The answer is {error}.")
    verdict = judge(part, cases, answers)
    if verdict.status == "right":
        return verdict
    return dataclasses.replace(verdict, case=arguments(first_difference(part, cases, answers)))


def _line(error: BaseException, answer: Callable[..., Any]) -> str:
    """Return where in the answer's own code an error came from, or "" where that is unknown."""
    code = getattr(answer, "__code__", None)
    lines = [
        (frame.f_code.co_filename, number)
        for frame, number in traceback.walk_tb(error.__traceback__)
        if code is not None and frame.f_code.co_filename == code.co_filename
    ]
    if not lines:
        return ""
    file, number = lines[-1]
    source = linecache.getline(file, number).strip()
    return f" (line {number}: {source})" if source else f" (line {number})"

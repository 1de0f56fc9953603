"""Marks for a student's parts: what their code gives, compared here with what is right.

The code runs elsewhere. What comes back is plain data, which is checked again, for a student's
code may have written it by other means; then it is wrong, or right, and can be nothing else.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from companion.exercises.judge import judge
from companion.exercises.part import Case, Part
from companion.exercises.plain import NotPlain, plain
from companion.grading.collect import Answers, Step
from companion.grading.runs import Outcome, Runs
from companion.grading.sandbox import Sandbox

Status = Literal[
    "right",
    "wrong",
    "not attempted",
    "missing",
    "unreadable",
    "error",
    "timeout",
    "crashed",
    "refused",
]
UNTRIED: frozenset[str] = frozenset({"not attempted", "missing", "unreadable"})
MESSAGE = 500  # characters of a student's own text in a message
PRINTED = 2000


@dataclass(frozen=True)
class PartResult:
    """The mark of one automatic part, and what to tell the student.

    Args:
        part: the part's id.
        points: reached.
        max_points: that can be reached.
        status: "right"; "wrong"; "not attempted": the cell is as released, or its function gives
            nothing; "missing": there is no such cell, or it does not define the name;
            "unreadable": its notebook could not be read; "error": an exception; "timeout": too
            slow; "crashed": its process ended or used too much memory; "refused": what it gave is
            not numbers.
        misconception: the name of the likely mistake, or None.
        message: a sentence or two; no hidden case and no expected value. Parts of it may be the
            student's own text.
        printed: the end of what the cells and the visible cases printed.
        seconds: that the part took.
    """

    part: str
    points: int
    max_points: int
    status: Status
    misconception: str | None = None
    message: str = ""
    printed: str = ""
    seconds: float = 0.0


def mark(
    answers: Answers,
    parts: Iterable[Part],
    student: str,
    secret: str,
    sandbox: Sandbox | None = None,
) -> list[PartResult]:
    """Mark a student's automatic parts, each apart from the others.

    Args:
        answers: what was handed in, as collect.answers gives it.
        parts: to be marked.
        student: the id that the student's own numbers derive from in a notebook without one.
        secret: the instructor's, from which the hidden cases derive as well.
        sandbox: where to run the answers.

    Returns:
        One PartResult for each part, in their order.

    Raises:
        ValueError: the secret is empty, or the student's id.
        Unavailable: this machine has no sandbox.
    """
    if not secret:
        raise ValueError("secret must not be empty: the hidden cases would be the visible ones")
    steps = {step.id: step for steps in answers.steps.values() for step in steps}
    results = []
    with Runs(answers, student, sandbox or Sandbox()) as runs:
        for part in parts:
            begin = time.perf_counter()
            exercise = part.id.rpartition("-")[0]
            own = answers.ids.get(exercise, student)
            if exercise in answers.unreadable:
                result = _result(part, "unreadable", "The notebook could not be read.")
            else:
                result = _mark(part, steps.get(part.id), runs, own, secret)
            results.append(replace(result, seconds=time.perf_counter() - begin))
    return results


def _mark(part: Part, step: Step | None, runs: Runs, student: str, secret: str) -> PartResult:
    if step is None:
        return _result(part, "missing", "The answer's cell is not in what was handed in.")
    if not step.own:
        return _result(part, "not attempted")
    visible = part.draw(student)
    hidden = part.draw(student, secret) if part.kind == "function" else []
    result = _run(part, runs, visible, hidden, by_itself=False)
    if result.status != "right" and runs.second(part.id):
        # What an earlier part has spoilt, in the language or in a library, must not cost this one.
        second = _run(part, runs, visible, hidden, by_itself=True)
        result = second if second.status == "right" else result
    return result


def _run(
    part: Part, runs: Runs, visible: Sequence[Case], hidden: Sequence[Case], by_itself: bool
) -> PartResult:
    asked: list[Sequence[Any]] = [visible, hidden] if hidden else [[None]]
    outcome = runs.run(part.id, part.name, asked, by_itself)
    result = (
        _ended(part, outcome, runs.sandbox)
        or not_defined(part, outcome)
        or compared(part, visible, outcome.answers[0])
    )
    if result.status == "right" and hidden:
        result = _in_hidden_cases(compared(part, hidden, outcome.answers[1]))
    return replace(result, printed=printed(outcome))


def _result(
    part: Part, status: Status, message: str = "", misconception: str | None = None
) -> PartResult:
    points = part.points if status == "right" else 0
    return PartResult(part.id, points, part.points, status, misconception, message)


def _ended(part: Part, outcome: Outcome, sandbox: Sandbox) -> PartResult | None:
    """Return the result of a run that gave no answer."""
    limits = sandbox.limits
    where = "The cell" if outcome.cell else "The answer"
    if outcome.ending == "timeout" or outcome.detail == "SIGXCPU":
        seconds = limits.cpu_seconds if outcome.detail else limits.wall_seconds
        return _result(part, "timeout", f"{where} ran for more than {seconds:g} seconds.")
    if outcome.ending == "memory":
        size = f"{limits.memory_bytes / 2**30:g} GB"
        files = f"{limits.scratch_files:,} files"
        message = f"{where} used more than {size} of memory or made more than {files}."
        return _result(part, "crashed", message)
    if outcome.ending == "too long":
        return _result(part, "refused", f"{where} gave more than can be taken in.")
    if outcome.ending == "crashed":
        detail = f" ({_shown(outcome.detail)})" if outcome.detail else ""
        return _result(part, "crashed", f"{where} ended its process{detail}.")
    return None


def not_defined(part: Part, outcome: Outcome) -> PartResult | None:
    """Return the result of cells that ran and do not define what they should."""
    start = outcome.start if isinstance(outcome.start, dict) else {}
    if start.get("defined") is True:
        return None
    errors = start.get("errors")
    error = errors.get(part.id) if isinstance(errors, dict) else None
    if error is not None:
        return _result(part, "error", f"The cell stopped: {_error(error)}")
    return _result(part, "missing", f"The cell does not define {part.name}.")


def compared(part: Part, cases: Sequence[Case], reply: Any) -> PartResult:
    """Return the result of a reply with answers, which may be any plain data."""
    answers = reply.get("answers") if isinstance(reply, dict) else None
    if not isinstance(answers, list) or len(answers) != len(cases):
        return _result(part, "refused", "What came back is no list of answers.")
    values = []
    for k, answer in enumerate(answers):
        where = f" in case {k + 1} of {len(cases)}" if len(cases) > 1 else ""
        if not isinstance(answer, dict):
            return _result(part, "refused", f"What came back{where} is no answer.")
        if "error" in answer:
            return _result(part, "error", f"The answer stopped{where}: {_error(answer['error'])}")
        if answer.get("nothing") is True:
            return _result(part, "not attempted")
        try:
            if "refused" in answer:
                raise NotPlain(_shown(answer["refused"]))
            values.append(plain(answer.get("value")))
        except NotPlain as error:
            return _result(part, "refused", f"The answer{where} is {error}.")
    verdict = judge(part, cases, values)
    if verdict.status == "right":
        return _result(part, "right")
    if verdict.misconception is None and not all(map(_finite, values)):
        return _result(part, "refused", verdict.message)
    return _result(part, "wrong", verdict.message, verdict.misconception)


def _in_hidden_cases(result: PartResult) -> PartResult:
    """Say that it was in the hidden cases, and nothing that a student's code says about them."""
    if result.status == "error":
        return replace(result, message="Right in the visible cases; an error in a hidden one.")
    if result.status in ("right", "wrong"):
        where = "Right in the visible cases, not in the hidden ones. "
        return replace(result, message=where + result.message if result.message else "")
    return replace(result, message="Right in the visible cases; no number in a hidden one.")


def _finite(value: Any) -> bool:
    return all(map(_finite, value)) if isinstance(value, list) else math.isfinite(value)


def _error(error: Any) -> str:
    """Return an exception's text as the sandbox described it."""
    if not isinstance(error, dict):
        return "an error."
    kind, message = _shown(error.get("type")), _shown(error.get("message"))
    line = error.get("line")
    where = f" (line {line})" if isinstance(line, int) and 0 < line < 10**6 else ""
    return f"{kind}: {message}{where}" if message else f"{kind}{where}"


def _shown(text: Any) -> str:
    """Return a student's text, cut short and without what a terminal or page would act on."""
    short = str(text)[:MESSAGE] if isinstance(text, str) else ""
    return "".join(letter if letter.isprintable() else " " for letter in short).strip()


def printed(outcome: Outcome) -> str:
    """Return the end of what was printed before the hidden cases came in."""
    reply = [outcome.start, *outcome.answers[:1]][-1]
    text = reply.get("printed") if isinstance(reply, dict) else None
    return text[-PRINTED:] if isinstance(text, str) else ""

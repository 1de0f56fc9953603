"""A student's parts run one after the other, so that none touches another."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import TracebackType
from typing import Any

from companion.grading.channel import Channel, Closed, Late, TooLong
from companion.grading.collect import STUDENT, Answers, Step
from companion.grading.definitions import defined
from companion.grading.sandbox import Sandbox

GRACE_SECONDS = 60.0  # for a busy machine to start Python, on top of a part's own time
PATIENCE = 3  # times a part's time, after which no part of a student runs a second time
MOST_OTHERS = 5
LARGE = ("torch", "matplotlib.pyplot")  # imported once for all parts, if any uses them
LONGEST_INTEGER = 400  # digits; a float has no more
ENDINGS = ("answer", "timeout", "memory", "too long", "crashed")
UNDEFINED = re.compile(r"name '(\w+)' is not defined")


class Lost(Exception):
    """The sandbox is gone, or makes no sense."""


@dataclass
class Outcome:
    """What a part's run gave, as it came from the sandbox: any plain data.

    Args:
        ending: "answer", or what ended the run before all answers were there.
        detail: what is known of a crash.
        cell: in which it ended, "" if it was in the cases.
        start: what came of the cells.
        answers: what came of the cases, for each list of them.
    """

    ending: str = "answer"
    detail: str = ""
    cell: str = ""
    start: Any = None
    answers: list[Any] = field(default_factory=list)


class Runs:
    """One student's runs: in one sandbox as long as it holds, else each in its own.

    A context manager, which ends what it started.
    """

    def __init__(self, answers: Answers, student: str, sandbox: Sandbox) -> None:
        self.answers, self.student, self.sandbox = answers, student, sandbox
        self.stack = ExitStack()
        self.channel: Channel | None = None
        self.begin = time.monotonic()
        self.apart = False  # since one part has brought the sandbox down
        self.harmful: set[str] = set()  # cells that hang or crash

    def __enter__(self) -> Runs:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()

    def run(
        self, part_id: str, name: str, cases: Sequence[Sequence[Any]], by_itself: bool = False
    ) -> Outcome:
        """Run an exercise's cells down to a part's own, then its cases, list by list.

        Each cell runs by itself: an error in one does not stop the next. If one of an earlier
        part hangs or crashes, the part runs once more without it.

        Args:
            part_id: the part, whose cell is there.
            name: of the function or variable that it defines.
            cases: lists of cases; None in place of a case asks for the variable.
            by_itself: without the answer cells of earlier parts.
        """
        exercise, until = self._until(part_id)
        others = self.answers.others.get(exercise, ())
        while True:
            left_out = self.harmful | {s.id for s in until if s.own and by_itself}
            kept = [s for s in until if s.id == part_id or s.id not in left_out]
            steps = [self._step(s, exercise) for s in kept]
            outcome = self._with_others(steps, others, name, cases)
            if outcome.cell not in {step["id"] for step in steps}:
                return outcome
            self.harmful.add(outcome.cell)
            if outcome.cell == part_id:
                return outcome

    def second(self, part_id: str) -> bool:
        """Say whether a part may run again by itself: it has not, and others do not wait long."""
        if time.monotonic() - self.begin > PATIENCE * self.sandbox.limits.wall_seconds:
            return False
        return any(step.own and step.id != part_id for step in self._until(part_id)[1])

    @cached_property
    def _defined(self) -> dict[str, set[str]]:
        """The names that each of the student's further cells defines."""
        return {other: defined(other) for some in self.answers.others.values() for other in some}

    def _until(self, part_id: str) -> tuple[str, tuple[Step, ...]]:
        """Return a part's exercise and its steps down to the part's."""
        for exercise, steps in self.answers.steps.items():
            ids = [step.id for step in steps]
            if part_id in ids:
                return exercise, steps[: ids.index(part_id) + 1]
        raise KeyError(part_id)

    def _step(self, step: Step, exercise: str) -> dict[str, Any]:
        if step.id == STUDENT:
            own = self.answers.ids.get(exercise, self.student)
            return {"id": step.id, "own": False, "pieces": [f"student = {own!r}"]}
        return {"id": step.id, "own": step.own, "pieces": list(step.pieces)}

    def _with_others(
        self,
        steps: list[dict[str, Any]],
        others: Sequence[str],
        name: str,
        cases: Sequence[Sequence[Any]],
    ) -> Outcome:
        """Run; if a name is missing that the student defines in another cell, run that too."""
        outcome = self._run(steps, name, cases)
        own = len(steps) - 1
        for k in range(MOST_OTHERS):
            missing = undefined(outcome)
            found = [other for other in others if not self._defined[other].isdisjoint(missing)]
            if not found:
                break
            others = [other for other in others if other != found[-1]]
            step = {"id": f"another cell {k + 1}", "own": True, "pieces": found[-1:]}
            steps = [*steps[:own], step, *steps[own:]]
            outcome = self._run(steps, name, cases)
        return outcome

    def _run(
        self, steps: list[dict[str, Any]], name: str, cases: Sequence[Sequence[Any]]
    ) -> Outcome:
        first = self.channel is None or self.apart
        for alone in (True,) if first else (False, True):
            try:
                return self._attempt(steps, name, cases, alone)
            except Lost:
                self._leave()
                self.apart = True
        return Outcome("crashed", "the sandbox was brought down")

    def _attempt(
        self,
        steps: list[dict[str, Any]],
        name: str,
        cases: Sequence[Sequence[Any]],
        alone: bool,
    ) -> Outcome:
        job = json.dumps({"steps": steps, "name": name})
        libraries = [name for name in LARGE if name.partition(".")[0] in job]
        start = f"start {' '.join(libraries)}\n{job}".encode()
        if alone:
            self._leave()
        ending, message = self._ask(start)
        if ending == "used":  # the part before has left something behind
            self._leave()
            ending, message = self._ask(start)
        if ending != "answer":
            return _ended(ending, message)
        outcome = Outcome(start=loaded(message))
        if not isinstance(outcome.start, dict) or outcome.start.get("defined") is not True:
            return outcome
        for some in cases:
            ending, message = self._ask(b"call\n" + json.dumps(some).encode())
            if ending != "answer":
                return replace(_ended(ending, message), start=outcome.start, cell="")
            outcome.answers.append(loaded(message))
        return outcome

    def _ask(self, message: bytes) -> tuple[str, bytes]:
        if self.channel is None:
            self.channel = self.stack.enter_context(self.sandbox.start())
        limits = self.sandbox.limits
        deadline = time.monotonic() + limits.wall_seconds + GRACE_SECONDS
        try:
            self.channel.send(message, deadline)
            reply = self.channel.receive(limits.answer_bytes + 100, deadline)
        except (Closed, Late, TooLong) as error:
            raise Lost from error
        ending, _, content = reply.partition(b"\n")
        if ending.decode("ascii", "replace") not in (*ENDINGS, "used"):
            raise Lost
        return ending.decode(), bytes(content)

    def _leave(self) -> None:
        self.channel = None
        self.stack.close()


def undefined(outcome: Outcome) -> list[str]:
    """Return the names that some cell or case found to be undefined."""
    start = outcome.start if isinstance(outcome.start, dict) else {}
    errors = start.get("errors")
    found = list(errors.values()) if isinstance(errors, dict) else []
    for reply in outcome.answers:
        answers = reply.get("answers") if isinstance(reply, dict) else None
        for answer in answers if isinstance(answers, list) else ():
            found.append(answer.get("error") if isinstance(answer, dict) else None)
    messages = [error.get("message") for error in found if isinstance(error, dict)]
    matches = [UNDEFINED.search(text) for text in messages if isinstance(text, str)]
    return [match[1] for match in matches if match]


def _ended(ending: str, message: bytes) -> Outcome:
    detail, _, cell = message.decode("utf-8", "replace").partition("\n")
    return Outcome(ending, detail[:100], cell)


def loaded(message: bytes) -> Any:
    """Return plain data out of JSON; None for what is no JSON, too deep, or a giant number."""
    try:
        return json.loads(message, parse_int=_integer)
    except (ValueError, RecursionError):
        return None


def _integer(digits: str) -> int:
    if len(digits) > LONGEST_INTEGER:
        raise ValueError("too many digits")
    return int(digits)

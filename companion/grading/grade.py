"""A class marked: students side by side, each kept as soon as marked, only what has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import joblib
from tqdm import tqdm

from companion.cluster import backend
from companion.exercises import PARTS
from companion.grading import masters
from companion.grading.collect import answers
from companion.grading.desk import Desk, Record, hand_in_key, marking_key
from companion.grading.hand_ins import HandIn, hand_ins
from companion.grading.marker import mark
from companion.grading.notebook import Cell
from companion.grading.sandbox import Sandbox, Unavailable, available


@dataclass(frozen=True)
class Marking:
    """How each student is marked.

    Args:
        released: the cells of the released notebooks, by exercise.
        secret: the instructor's.
        sandbox: where the answers run.
    """

    released: Mapping[str, Sequence[Cell]]
    secret: str
    sandbox: Sandbox

    @cached_property
    def key(self) -> str:
        """A key of all that the marks depend on besides the hand-in."""
        texts = [repr(self.released[exercise]) for exercise in sorted(self.released)]
        return marking_key(self.secret, repr(self.sandbox), texts)

    def same(self, hand_in: HandIn, kept: str | None) -> bool:
        """Say whether a key that was kept is of this hand-in, marked like this."""
        if not kept:
            return False
        try:
            return hand_in_key(hand_in, self.key) == kept
        except Exception:  # to mark it will say what is wrong
            return False

    def student(self, name: str, hand_in: HandIn) -> Record:
        """Mark a student; what goes wrong is a problem of this student alone."""
        try:
            key = hand_in_key(hand_in, self.key)
            found = answers(hand_in.path, self.released, masters.NAMES, hand_in.files)
            own = [*found.typed, name][0]
            results = mark(found, PARTS.values(), own, self.secret, self.sandbox)
        except Exception as error:
            problem = f"could not be marked: {type(error).__name__}: {error}"
            return Record(name, name, "", problems=[problem], canvas=hand_in.canvas)
        return Record(
            *(name, own, key, results, found.texts, found.problems, found.typed),
            canvas=hand_in.canvas,
            ids=found.ids,
        )


@dataclass(frozen=True)
class Graded:
    """What grading a class came to.

    Args:
        marked: the students who were marked now.
        unchanged: those whose hand-in has not changed since they were marked.
    """

    marked: Sequence[str] = ()
    unchanged: Sequence[str] = ()


def grade(
    submissions: Path,
    desk: Desk,
    sandbox: Sandbox,
    jobs: int = -1,
    again: bool = False,
    scheduler: str | None = None,
) -> Graded:
    """Mark a class, and keep each student's marks on the desk as soon as they are there.

    Args:
        submissions: as hand_ins takes it.
        desk: where marks are kept; a student whose marks are up to date there is passed over.
        sandbox: where the answers run.
        jobs: students at a time; -1 for one per core.
        again: mark also those who are up to date.
        scheduler: of a dask cluster whose workers see the same files; None for this machine.

    Raises:
        ValueError: there is nothing to grade, or another grading of the desk is at work.
        Unavailable: this machine has no sandbox.
    """
    reason = available()
    if reason is not None and not sandbox.unsafe:
        raise Unavailable(reason)
    own = desk.folder.resolve()  # which may lie among the submissions
    found = hand_ins(submissions.resolve())
    students = {name: one for name, one in found.items() if one.path.resolve() != own}
    marking = Marking(masters.released(), desk.secret, sandbox)
    # Here, and not where students are marked: to start that takes longer than to look.
    unchanged = {n for n, one in students.items() if not again and marking.same(one, desk.key(n))}
    todo = [name for name in students if name not in unchanged]
    if not todo:
        return Graded([], sorted(unchanged))
    with desk.alone(), backend(scheduler):
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        records = parallel(joblib.delayed(marking.student)(name, students[name]) for name in todo)
        for record in tqdm(records, total=len(todo), unit="student"):
            desk.keep(_with_earlier(record, desk.record(record.student)))
    return Graded(sorted(todo), sorted(unchanged))


def _with_earlier(record: Record, earlier: Record | None) -> Record:
    """Return what to keep of a student: one who could not be marked has the marks from before."""
    if record.key or earlier is None or not earlier.results:
        return record
    problems = [f"{problem}; the marks are those from before" for problem in record.problems]
    return replace(earlier, key="", problems=[*dict.fromkeys([*earlier.problems, *problems])])

"""A class marked: students side by side, each kept as soon as marked, only what has changed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import joblib
from tqdm import tqdm

from companion.exercises import EXERCISES, PARTS
from companion.grading import masters
from companion.grading.collect import answers
from companion.grading.desk import Desk, Record, hand_in_key, marking_key
from companion.grading.files import NOTEBOOKS
from companion.grading.marker import mark
from companion.grading.notebook import Cell
from companion.grading.sandbox import Sandbox, Unavailable, available

PLACEHOLDER = "your-id"  # what stands in the student's cell as released
SUFFIXES = (*NOTEBOOKS, ".zip")


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

    @property
    def key(self) -> str:
        """Return a key of all that the marks depend on besides the hand-in."""
        texts = [repr(self.released[exercise]) for exercise in sorted(self.released)]
        return marking_key(self.secret, repr(self.sandbox), texts)

    def student(self, name: str, path: Path, key: str) -> Record:
        """Mark a student; what goes wrong is a problem of this one alone."""
        try:
            found = answers(path, self.released, masters.NAMES)
            typed = found.typed if found.typed != PLACEHOLDER else None
            own = typed or name
            results = mark(found, PARTS.values(), own, self.secret, self.sandbox)
        except Exception as error:
            problem = f"could not be marked: {type(error).__name__}: {error}"
            return Record(name, name, "", problems=[problem])
        return Record(name, own, key, results, found.texts, found.problems)


@dataclass(frozen=True)
class Graded:
    """What grading a class came to.

    Args:
        marked: the students who were marked now.
        unchanged: those whose hand-in has not changed since they were marked.
    """

    marked: Sequence[str] = ()
    unchanged: Sequence[str] = ()


def hand_ins(submissions: Path) -> dict[str, Path]:
    """Return each student's hand-in by the student's name: a folder, a notebook or a zip file.

    A folder that holds just notebooks of the exercises is one student's; so is a single file.

    Raises:
        ValueError: there is nothing to grade.
    """
    if submissions.is_file():
        return {submissions.stem: submissions}
    if not submissions.is_dir():
        raise ValueError(f"{submissions}: there is no such folder or notebook")
    entries = sorted(
        path
        for path in submissions.iterdir()
        if not path.name.startswith((".", "__MACOSX"))
        and not path.is_symlink()  # out of an archive, it may lead anywhere
        and (path.is_dir() or path.suffix.lower() in SUFFIXES)
    )
    if not entries:
        raise ValueError(f"{submissions}: no folder, notebook or zip file of a student is in it")
    if all(path.is_file() and path.stem in EXERCISES for path in entries):
        return {submissions.resolve().name: submissions}
    stems = {path: path.name if path.is_dir() else path.stem for path in entries}
    often = Counter(stems.values())
    return {path.name if often[stem] > 1 else stem: path for path, stem in stems.items()}


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
        ValueError: there is nothing to grade.
        Unavailable: this machine has no sandbox.
    """
    reason = available()
    if reason is not None and not sandbox.unsafe:
        raise Unavailable(reason)
    own = desk.folder.resolve()  # which may lie among the submissions
    students = {n: path for n, path in hand_ins(submissions).items() if path.resolve() != own}
    marking = Marking(masters.released(), desk.secret, sandbox)
    everything = marking.key
    keys = {name: hand_in_key(path, everything) for name, path in students.items()}
    todo = [name for name in students if again or not _up_to_date(desk, name, keys[name])]
    tasks = (
        joblib.delayed(marking.student)(name, students[name].resolve(), keys[name]) for name in todo
    )
    with _backend(scheduler):
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        for record in _shown(parallel(tasks), len(todo)):
            desk.keep(record)
    return Graded(todo, sorted(students.keys() - set(todo)))


def same_id(records: Iterable[Record]) -> dict[str, list[str]]:
    """Return the ids that several students typed in, with the students: they share numbers."""
    found: dict[str, list[str]] = defaultdict(list)
    for record in records:
        found[record.id].append(record.student)
    return {own: students for own, students in found.items() if len(students) > 1}


def _up_to_date(desk: Desk, name: str, key: str) -> bool:
    record = desk.record(name)
    return record is not None and record.key == key


def _shown(records: Iterable[Record], total: int) -> Iterator[Record]:
    """Yield records under a progress bar with the time left."""
    yield from tqdm(records, total=total, unit="student", disable=not total)


@contextmanager
def _backend(scheduler: str | None) -> Iterator[None]:
    """Run on a dask cluster, or on the cores of this machine."""
    with ExitStack() as stack:
        if scheduler is not None:
            from distributed import Client

            stack.enter_context(Client(scheduler))  # type: ignore[no-untyped-call]
            stack.enter_context(joblib.parallel_config(backend="dask"))
        yield

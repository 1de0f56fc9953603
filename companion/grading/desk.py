"""The desk's folder: the instructor's secret, and what is known of each student, a file for each.

A student's file is replaced as a whole once the student is marked, so that whatever stops the
desk, what was marked before is there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from companion.exercises import EXERCISES
from companion.grading import files
from companion.grading.hand_ins import HandIn
from companion.grading.marker import PartResult

PACKAGE = Path(__file__).resolve().parents[1]
# What a mark depends on, besides the hand-in, the masters and the secret.
SOURCES = ("exercises/*.py", "grading/*.py", "mdp.py", "policy.py", "validation.py")
LONGEST_NAME = 60


@dataclass(frozen=True)
class Record:
    """What is known of a student.

    Args:
        student: the hand-in's name.
        id: the id that the student's own numbers derive from: as typed in, else the name.
        key: of all that the marks depend on; "" if the student could not be marked.
        results: one for each automatic part.
        texts: the written answers, by the cell's name.
        problems: what could not be read, or why the student could not be marked.
        typed: the ids that the student typed in, the most frequent one first.
        canvas: the hand-in's name is out of Canvas's download.
        ids: by exercise, the id that was typed in there.
    """

    student: str
    id: str
    key: str
    results: Sequence[PartResult] = ()
    texts: Mapping[str, str] | None = None
    problems: Sequence[str] = ()
    typed: Sequence[str] = ()
    canvas: bool = False
    ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def points(self) -> int:
        """Return the points by automatic parts."""
        return sum(result.points for result in self.results)


class Desk:
    """A folder in which marks are kept; it is the instructor's alone.

    Args:
        folder: made if need be.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.students = folder / "students"
        self.released = folder / "released.txt"  # names of exercises, a line each

    def make(self) -> None:
        """Make the folder, which git passes over: a commit would give the secret away."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.folder / ".gitignore").write_text("*\n", encoding="utf-8")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other gradings of this desk out while one is at work.

        Raises:
            ValueError: one is at work.
        """
        import fcntl  # not on Windows, where a desk can release but not grade

        self.make()
        with (self.folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(
                    f"{self.folder}: another `grade` is at work on this desk; wait for its end"
                ) from None
            yield

    @cached_property
    def secret(self) -> str:
        """The secret from which the hidden cases derive; made at first use, kept since then."""
        file = self.folder / "secret"
        self.make()
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            kept = file.read_text(encoding="utf-8").strip()
            if not kept:
                raise ValueError(f"{file} is empty: delete it for a new secret") from None
            return kept
        made = secrets.token_hex(16)
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            opened.write(made + "\n")
        return made

    @property
    def exercises(self) -> tuple[str, ...]:
        """The exercises that count in every total: those that were released, or all."""
        if not self.released.exists():
            return EXERCISES
        names = self.released.read_text(encoding="utf-8").split()
        return tuple(exercise for exercise in EXERCISES if exercise in names)

    def release(self, exercises: Iterable[str]) -> None:
        """Keep that exercises were released, besides those that were before."""
        before = self.exercises if self.released.exists() else ()
        self.make()
        put(self.released, "".join(f"{name}\n" for name in dict.fromkeys([*before, *exercises])))

    def keep(self, record: Record) -> None:
        """Keep a student's record in place of an earlier one."""
        put(self._file(record.student), json.dumps(asdict(record), indent=1))

    def record(self, student: str) -> Record | None:
        """Return what is known of a student, None if nothing is."""
        return _read(self._file(student))

    def key(self, student: str) -> str | None:
        """Return the key of what is known of a student, None if nothing is."""
        record = self.record(student)
        return record.key if record else None

    def records(self) -> list[Record]:
        """Return all records, in the order of the students' names."""
        found = [_read(file) for file in self.students.glob("*.json")]
        return sorted((one for one in found if one), key=lambda record: record.student)

    def counted(self) -> list[Record]:
        """Return all records with what counts in them: the exercises that were released."""
        exercises = self.exercises
        return [
            replace(
                record,
                results=[r for r in record.results if r.part.rpartition("-")[0] in exercises],
                texts={
                    name: text
                    for name, text in (record.texts or {}).items()
                    if name.rpartition("-")[0] in exercises
                },
            )
            for record in self.records()
        ]

    def _file(self, student: str) -> Path:
        return self.students / f"{file_name(student)}.json"


def put(file: Path, text: str) -> None:
    """Put a file, as a whole or not at all, in the place of an earlier one."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, file)


def file_name(student: str) -> str:
    """Return a name for a student's files, which no other student has.

    A student's own may hold what no file's can, or differ from another in capitals alone.
    """
    short = re.sub(r"[^\w-]+", "_", student, flags=re.ASCII)[:LONGEST_NAME]
    digest = hashlib.sha256(student.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{short}-{digest[:12]}"


def marking_key(secret: str, settings: str, texts: Sequence[str]) -> str:
    """Return a key of all that the marks of every student depend on.

    Args:
        secret: the instructor's.
        settings: of the sandbox.
        texts: of what is released.
    """
    digest = hashlib.sha256()
    sources = sorted(path for pattern in SOURCES for path in PACKAGE.glob(pattern))
    for part in (secret, settings, *texts, *(path.read_text(encoding="utf-8") for path in sources)):
        digest.update(hashlib.sha256(part.encode()).digest())
    return digest.hexdigest()


def hand_in_key(hand_in: HandIn, marking: str) -> str:
    """Return a key of a student's notebooks and of how they are marked."""
    digest = hashlib.sha256(marking.encode())
    for file in files.notebooks(hand_in.path, hand_in.files):
        for part in (file.name.encode("utf-8", "surrogateescape"), file.raw, file.problem.encode()):
            digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def _read(file: Path) -> Record | None:
    """Return the record in a file; None if it is none, so that the student is marked again."""
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        results = [PartResult(**result) for result in content.pop("results")]
        return Record(**content, results=results)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None

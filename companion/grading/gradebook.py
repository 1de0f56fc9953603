"""Marks in nbgrader's gradebook, and what was marked there by hand."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from companion.grading.desk import Desk, Record, file_name, put
from companion.grading.masters import student_versions

ASSIGNMENT = "chapter-20"
# A folder on the desk: by student, digests of the written answers that the marks by hand are of.
ENTERED = "entered"
STAMP = ""  # the name under which it says which marks were entered where
LONGEST_NAME = 200  # bytes; files of that name begin with some more


Stand = Literal["marked", "waits", "not attempted", "missing", "unreadable"]


@dataclass(frozen=True)
class Written:
    """How a student's written part stands.

    Args:
        exercise: "20-1" and so on.
        points: by hand; 0 while it waits, or if nothing was handed in.
        max_points: that can be reached.
        status: "marked"; "waits" for marking by hand; "not attempted", or what all automatic parts
            of the exercise are, "missing" or "unreadable".
        comment: by the instructor, or "".
    """

    exercise: str
    points: float
    max_points: float
    status: Stand
    comment: str = ""

    @property
    def waits(self) -> bool:
        """Say whether it is yet to be marked."""
        return self.status == "waits"


def waiting(count: int) -> str:
    """Say how many written answers wait.

    >>> waiting(1), waiting(2)
    ('1 written answer waits', '2 written answers wait')
    """
    return "1 written answer waits" if count == 1 else f"{count} written answers wait"


def default_url(desk: Desk) -> str:
    """Return the address of the gradebook in the desk's folder."""
    return f"sqlite:///{desk.folder.resolve() / 'gradebook.db'}"


def enter(records: Iterable[Record], desk: Desk, url: str) -> Iterator[Record]:
    """Enter what is new; what was marked by hand stays, and waits again if its text has changed.

    Args:
        records: of the students.
        desk: where it is kept which texts were entered.
        url: of the database, as nbgrader's gradebook takes it.

    Yields:
        The records that were not in the gradebook yet, each once it is. Only when the next one is
        asked for is it kept that it was entered, so that what is done with it is done as well.
    """
    with opened(url) as book:
        _enter_assignment(book)
        there = {submission.student.id for submission in book.assignment_submissions(ASSIGNMENT)}
        for record in records:
            if not record.key:  # it could not be marked
                continue
            file = desk.folder / ENTERED / f"{file_name(record.student)}.json"
            before = _digests(file)
            stamp = _digest(f"{record.key} {url}")
            same = before.get(STAMP) == stamp and student_id(record.student) in there
            if same:
                continue
            _enter_student(book, record, before)
            yield record
            texts = {name: _digest(text) for name, text in (record.texts or {}).items()}
            # Student by student: what is marked by hand after a Ctrl-C would wait again.
            put(file, json.dumps({**texts, STAMP: stamp}))


def written(records: Iterable[Record], url: str) -> dict[str, list[Written]]:
    """Return how the written parts stand of those students whom the gradebook knows."""
    known = {student_id(record.student): record for record in records}
    found: dict[str, list[Written]] = {}
    with opened(url) as book:
        for student, exercise, *stands in _written_rows(book):
            if student in known:
                record = known[student]
                one = _written(exercise, *stands)
                found.setdefault(record.student, []).append(_as_handed_in(one, record))
    return found


def _written_rows(book: Any) -> Iterator[Any]:
    """Yield, by one query, student, exercise, points, points by hand, most, waits, comment."""
    from nbgrader import api
    from sqlalchemy import and_
    from sqlalchemy.orm import aliased

    submission, own = api.SubmittedAssignment, api.SubmittedNotebook
    asked, answer = aliased(api.GradeCell, flat=True), aliased(api.SolutionCell, flat=True)
    same_cell = and_(answer.name == asked.name, answer.notebook_id == asked.notebook_id)
    of_it = and_(api.Comment.notebook_id == own.id, api.Comment.cell_id == answer.id)
    yield from (
        book.db.query(submission.student_id, api.Notebook.name)
        .add_columns(api.Grade.score, api.Grade.manual_score, asked.max_score)
        .add_columns(api.Grade.needs_manual_grade, api.Comment.comment)
        .join(api.Assignment, api.Assignment.id == submission.assignment_id)
        .join(own, own.assignment_id == submission.id)
        .join(api.Notebook, api.Notebook.id == own.notebook_id)
        .join(api.Grade, api.Grade.notebook_id == own.id)
        .join(asked, asked.id == api.Grade.cell_id)
        .outerjoin(answer, same_cell)
        .outerjoin(api.Comment, of_it)
        .filter(api.Assignment.name == ASSIGNMENT, asked.cell_type == "markdown")
        .order_by(api.Notebook.name)
    )


@contextmanager
def opened(url: str) -> Iterator[Any]:
    """Open the gradebook, made if need be.

    Raises:
        ValueError: there is no such database, or no driver for it.
    """
    from nbgrader.api import Gradebook
    from sqlalchemy.exc import SQLAlchemyError

    path = os.environ.get("PATH", "")
    # For a new database nbgrader calls alembic by name, which lies beside this interpreter.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), path])
    try:
        book = Gradebook(url)
    except (SQLAlchemyError, ImportError) as error:
        raise ValueError(f"the gradebook (--db) can't be opened: {error}") from error
    finally:
        os.environ["PATH"] = path
    book.db().expire_on_commit = False  # or all that was entered would be read again
    with book:
        yield book


def _enter_assignment(book: Any) -> None:
    """Enter the exercises with their cells and points."""
    book.update_or_create_assignment(ASSIGNMENT)
    for exercise, version in student_versions().items():
        book.update_or_create_notebook(exercise, ASSIGNMENT)
        for cell in version.cells:
            nbgrader = cell.metadata.get("nbgrader", {})
            name = nbgrader.get("grade_id")
            if nbgrader.get("grade"):
                book.update_or_create_grade_cell(
                    name,
                    exercise,
                    ASSIGNMENT,
                    max_score=nbgrader["points"],
                    cell_type=cell.cell_type,
                )
            if nbgrader.get("solution"):
                book.update_or_create_solution_cell(name, exercise, ASSIGNMENT)


def _enter_student(book: Any, record: Record, entered: dict[str, str]) -> None:
    book.update_or_create_student(student_id(record.student))
    with book.db.no_autoflush:  # half-made, it can't be written yet
        submission = book.update_or_create_submission(ASSIGNMENT, student_id(record.student))
    points = {f"{result.part}-check": result.points for result in record.results}
    texts = record.texts or {}
    for notebook in submission.notebooks:
        for grade in notebook.grades:
            if grade.cell.cell_type == "code":
                grade.auto_score = points.get(grade.name, 0)
                grade.needs_manual_grade = False
            elif grade.name not in texts:
                grade.auto_score, grade.needs_manual_grade = 0, False
                if grade.name in entered:  # else a mark by hand is of what came on paper
                    grade.manual_score = None
            else:
                grade.auto_score = None
                same = entered.get(grade.name) == _digest(texts[grade.name])
                if grade.manual_score is None or not same:
                    grade.needs_manual_grade = True
    book.db.commit()


def _written(
    exercise: str,
    points: float,
    by_hand: float | None,
    most: float,
    waits: bool,
    comment: str | None,
) -> Written:
    status: Stand = "not attempted"
    if waits:
        status = "waits"
    elif by_hand is not None:
        status = "marked"
    # The points of an earlier text stay in the gradebook for whoever marks the new one.
    return Written(exercise, 0 if waits else points, most, status, comment or "")


def _as_handed_in(one: Written, record: Record) -> Written:
    """Use the automatic parts' word for a notebook that was not there, or could not be read."""
    statuses = {r.status for r in record.results if r.part.rpartition("-")[0] == one.exercise}
    for status in ("missing", "unreadable"):
        if one.status == "not attempted" and statuses == {status}:
            return replace(one, status=status)
    return one


def student_id(student: str) -> str:
    """Return a student's name in the gradebook, which is a folder's in the course as well."""
    raw = student.encode("utf-8", "backslashreplace")
    fit = len(raw) <= LONGEST_NAME and not {"/", "\0"} & {*student} and student.strip(".")
    return raw.decode() if fit else file_name(student)


def _digests(file: Path) -> dict[str, str]:
    if not file.exists():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise TypeError
    except (ValueError, TypeError):
        what = "delete it, and the student's written answers wait to be marked once more"
        raise ValueError(f"{file} is spoilt: {what}") from None
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

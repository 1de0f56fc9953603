"""Whose is what was handed in: the ids that students typed in, held against the class's list.

Marks belong to the hand-in as the learning management system names it, and a student's own numbers
derive from the id as it was typed in, right or not: then what the student saw is what is marked.
What does not fit is reported, and nothing is guessed.
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from companion.grading.desk import Record
from companion.grading.lms import identities
from companion.grading.marker import UNTRIED

# Columns of Canvas's and Moodle's lists, and of lists by hand, that say who a student is.
WHO = {
    *("id", "student", "student id", "name", "full name", "login", "login id", "username"),
    *("sis user id", "sis login id", "email", "email address", "id number", "identifier"),
    "user name",
}
KEPT = "roster.csv"  # on the desk
NOBODY = {"Points Possible", "Student, Test"}  # rows in Canvas's list
DELIMITERS = ",;\t"


FULL_NAME = ("full name", "name", "student")
LOGIN = ("sis login id", "login id", "login", "username", "user name")


@dataclass(frozen=True)
class Student:
    """A row of the class's list: a name to show, and all that may stand for the student.

    Args:
        name: to show.
        keys: that stand for the student.
        cells: by the column's name in small letters.
    """

    name: str
    keys: frozenset[str]
    cells: Mapping[str, str] = field(default_factory=dict)

    def cell(self, *columns: str) -> str:
        """Return what stands in the first of some columns that has anything, or ""."""
        return next((self.cells[name] for name in columns if self.cells.get(name)), "")

    @property
    def full_name(self) -> str:
        """Return the name in one column or in Moodle's two, or ""."""
        parts = (self.cell("first name"), self.cell("last name", "surname"))
        return self.cell(*FULL_NAME) or " ".join(filter(None, parts))

    @property
    def canvas_number(self) -> str:
        """Return Canvas's number: the id in Canvas's list, which has columns of its own beside."""
        return self.cells.get("id", "") if {"sis user id", "sis login id"} & {*self.cells} else ""


def read_roster(file: Path) -> list[Student]:
    """Read the class's list: a CSV file whose columns are named, as Canvas and Moodle export it.

    Columns that say who a student is count (name, ID, login, email and the like); if there is
    none of these, all do.

    Raises:
        ValueError: it holds nobody, or is not a text in UTF-8.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{file}: the roster must be a CSV file in UTF-8") from None
    delimiter = max(DELIMITERS, key=text.partition("\n")[0].count)
    rows = [*csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)]
    head = [name.strip().casefold() for name in rows[0]] if rows else []
    used = [k for k, name in enumerate(head) if name in WHO]
    students = []
    for row in rows[1:]:
        cells = [row[k].strip() for k in used or range(len(row)) if k < len(row)]
        keys = {key for cell in cells for key in (squeezed(cell), local_part(cell)) if key}
        if keys and cells[0] not in NOBODY:
            by_name = dict(zip(head, map(str.strip, row), strict=False))
            students.append(Student(next(filter(None, cells)), frozenset(keys), by_name))
    if not students:
        raise ValueError(f"{file}: the roster holds nobody below its first line")
    return students


def squeezed(text: str) -> str:
    """Return letters and digits alone, in small letters: two spellings of one name are equal.

    >>> squeezed("Doe, Jane"), squeezed(" JDoe-3")
    ('doejane', 'jdoe3')
    """
    return re.sub(r"[\W_]", "", text).casefold()


def local_part(text: str) -> str:
    """Return what is before the @ of an email address, or ""."""
    before, at, _ = text.partition("@")
    return squeezed(before) if at else ""


def misfits(records: Sequence[Record], roster: Sequence[Student] | None) -> list[str]:
    """Return what does not fit together, a line each.

    Args:
        records: of the class.
        roster: the class's list; without it, an id is held against the hand-ins' names.
    """
    found = [line for record in records for line in _ids(record)]
    if roster is None:
        found += _against_names(records)
    else:
        found += _against_roster(records, roster)
    for own, students in same_id(records).items():
        found.append(f"{', '.join(students)} have the same id, {own}: their numbers were the same")
    return found


def same_id(records: Iterable[Record]) -> dict[str, list[str]]:
    """Return the ids that several students typed in, with the students: they share numbers."""
    found: dict[str, list[str]] = defaultdict(list)
    for record in records:
        for own in record.typed or [record.id]:
            found[own].append(record.student)
    return {own: students for own, students in found.items() if len(students) > 1}


def _ids(record: Record) -> list[str]:
    tried = any(result.status not in UNTRIED for result in record.results)
    if not record.typed and tried:
        return [f"{record.student}: no id was typed in; the numbers derive from {record.id}"]
    if len(record.typed) > 1:
        ids = ", ".join(record.typed)
        return [f"{record.student}: typed several ids ({ids}); each notebook counts with its own"]
    return []


def _against_names(records: Sequence[Record]) -> list[str]:
    names = {
        one.student: set(map(squeezed, identities(one.student, one.canvas))) for one in records
    }
    found = []
    for record in records:
        for typed in record.typed:
            key = squeezed(typed)
            if key in names[record.student]:
                continue
            others = [name for name, keys in names.items() if key in keys]
            # A name that a system made is of what no one types in.
            by_a_system = len(identities(record.student, record.canvas)) > 1
            if others or not by_a_system:
                found.append(_typed(record, typed, "which is another one's" if others else ""))
    return found


def _against_roster(records: Sequence[Record], roster: Sequence[Student]) -> list[str]:
    found: list[str] = []
    for record in records:
        rows = rows_of(record, roster)
        if len(rows) != 1:
            how = f"{len(rows)} times" if rows else "not"
            found.append(f"{record.student}: is {how} on the roster")
            continue
        for typed in record.typed:
            if squeezed(typed) not in rows[0].keys:
                owners = [row.name for row in roster if squeezed(typed) in row.keys]
                whose = f"which is {owners[0]}'s on the roster" if owners else ""
                found.append(_typed(record, typed, whose or "which is not on the roster"))
    names = "; ".join(row.name for row in absent(records, roster))
    return found + ([f"on the roster, but handed in nothing: {names}"] if names else [])


def absent(records: Sequence[Record], roster: Sequence[Student]) -> list[Student]:
    """Return the rows of those who handed in nothing."""
    seen = {row.keys for record in records for row in rows_of(record, roster)}
    return [row for row in roster if row.keys not in seen]


def rows_of(record: Record, roster: Sequence[Student]) -> list[Student]:
    """Return the rows of a student, by what the hand-in's name says of the student."""
    for identity in identities(record.student, record.canvas):
        keys = {squeezed(identity), squeezed(identity.removeprefix("Participant "))}
        if rows := [row for row in roster if row.keys & keys]:
            return rows
    return []


def _typed(record: Record, typed: str, what: str) -> str:
    middle = f", {what}," if what else ""
    return f"{record.student}: typed the id {typed}{middle} and is marked with that one's numbers"

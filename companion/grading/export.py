"""Marks as tables for other programs: every part, and totals for Canvas and Moodle."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from companion.grading.desk import Record
from companion.grading.gradebook import Written
from companion.grading.lms import canvas_student, moodle_student
from companion.grading.roster import LOGIN, Student, absent, rows_of

COLUMNS = ("student", "part", "points", "max points", "status", "misconception")
TITLE = "Chapter 20"
FORMULA = ("=", "+", "-", "@", "\t", "\r")
Rows = list[tuple[object, ...]]


def part_rows(record: Record, written: Sequence[Written] = ()) -> Rows:
    """Return a student's rows of the table of all parts, under COLUMNS."""
    rows: Rows = [
        (record.student, r.part, r.points, r.max_points, r.status, r.misconception or "")
        for r in record.results
    ]
    for one in written:
        name = f"{one.exercise}-written"
        rows.append(
            (record.student, name, number(one.points), number(one.max_points), one.status, "")
        )
    return rows


def total(record: Record, written: Sequence[Written] = ()) -> tuple[float, float]:
    """Return a student's points, and the points that can be reached."""
    return (
        record.points + sum(one.points for one in written),
        sum(r.max_points for r in record.results) + sum(one.max_points for one in written),
    )


def possible(records: Sequence[Record], written: Mapping[str, Sequence[Written]]) -> float:
    """Return the points that a class's students can reach; who could not be marked shows none."""
    return max((total(one, written.get(one.student, ()))[1] for one in records), default=0)


def write_all(
    records: Sequence[Record],
    written: Mapping[str, Sequence[Written]],
    folder: Path,
    roster: Sequence[Student] = (),
) -> list[Path]:
    """Write marks.csv (every part), canvas.csv and moodle.csv (totals), and return their paths.

    Canvas and Moodle find a student by the number in the hand-in's name as it was downloaded from
    there; or else Canvas by login, Moodle by the full name. What the roster has of these is taken
    from there, and who is on it and handed in nothing has 0 points.
    """
    folder.mkdir(parents=True, exist_ok=True)
    parts = [row for one in records for row in part_rows(one, written.get(one.student, ()))]
    totals = [
        (one, _row_of(one, roster), number(total(one, written.get(one.student, ()))[0]))
        for one in records
    ] + [(Record("", "", ""), row, 0) for row in absent(records, roster)]
    most = number(possible(records, written))
    canvas: Rows = [("    Points Possible", "", "", "", "", most)]
    canvas += [(*_canvas_row(one, row), points) for one, row, points in totals]
    moodle: Rows = [(*_moodle_row(one, row), points, most) for one, row, points in totals]
    head = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section", TITLE)
    return [
        write_table(folder / "marks.csv", COLUMNS, parts),
        write_table(folder / "canvas.csv", head, canvas),
        write_table(
            folder / "moodle.csv", ("Identifier", "Full name", "Grade", "Maximum Grade"), moodle
        ),
    ]


def _row_of(record: Record, roster: Sequence[Student]) -> Student:
    """Return a student's row of the roster; an empty one if there is none, or more than one."""
    rows = rows_of(record, roster)
    return rows[0] if len(rows) == 1 else Student("", frozenset())


def _canvas_row(record: Record, row: Student) -> tuple[str, ...]:
    """Return a student's cells under Student, ID, SIS User ID, SIS Login ID and Section."""
    student = record.student
    user, name = canvas_student(student) if record.canvas else ("", student)
    login = row.cell(*LOGIN) or ("" if user else student)
    number_there = user or row.canvas_number
    section = row.cell("section")
    return (
        row.full_name or name or row.name,
        number_there,
        row.cell("sis user id"),
        login,
        section,
    )


def _moodle_row(record: Record, row: Student) -> tuple[str, str]:
    """Return a student's cells under Identifier and Full name."""
    identifier, name = moodle_student(record.student)
    return identifier or row.cell("identifier"), row.full_name or name or row.name


def write_table(file: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write a CSV file that a spreadsheet opens as it is."""
    # It takes UTF-8 for what it is by its byte order mark.
    with file.open("w", encoding="utf-8-sig", newline="", errors="replace") as opened:
        table = csv.writer(opened)
        table.writerow(head)
        table.writerows([harmless(value) for value in row] for row in rows)
    return file


def harmless(value: object) -> object:
    """Return a value that a spreadsheet does not take for a formula.

    >>> harmless("ada"), harmless("=1+1"), harmless(-1)
    ('ada', "'=1+1", -1)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def number(points: float) -> float | int:
    """Return points without a fraction that is zero."""
    return int(points) if points == int(points) else points

"""Marks as a table for other programs."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from companion.grading.desk import Record

COLUMNS = ("student", "part", "points", "max points", "status", "misconception")
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_marks(records: Iterable[Record], file: Path) -> int:
    """Write a CSV file with a row for each student and automatic part; return how many rows.

    The columns are student, part, points, max points, status, misconception.
    """
    rows = [
        (cell(record.student), r.part, r.points, r.max_points, r.status, r.misconception or "")
        for record in records
        for r in record.results
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    # A spreadsheet takes UTF-8 for what it is by its byte order mark.
    with file.open("w", encoding="utf-8-sig", newline="", errors="replace") as opened:
        table = csv.writer(opened)
        table.writerow(COLUMNS)
        table.writerows(rows)
    return len(rows)


def cell(text: str) -> str:
    """Return a text that a spreadsheet does not take for a formula.

    >>> cell("ada"), cell("=1+1")
    ('ada', "'=1+1")
    """
    return f"'{text}" if text.startswith(FORMULA) else text

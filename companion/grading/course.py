"""A folder in which nbgrader's formgrader shows the written answers, for marking by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from companion.grading.desk import Record
from companion.grading.gradebook import ASSIGNMENT, student_id
from companion.grading.marker import PartResult
from companion.grading.masters import masters, student_version, write, written

CONFIG = """\
c = get_config()
c.CourseDirectory.root = {root!r}
c.CourseDirectory.db_url = {url!r}
"""
# What begins a tag, a letter by another name, or a link's address, which may be code.
ACTIVE = re.compile(r"<(?=[^\s\d=])|&(?=[#\w])|\](?=[(\[:])")


def write_course(records: Iterable[Record], folder: Path, url: str) -> None:
    """Write what formgrader shows: each student's written answers, and beside them the masters.

    These, with the model answers, are where formgrader's link from the assignment's name leads.
    What nbgrader makes for students is from the students' own notebooks, which hold none.

    Args:
        records: of the students.
        folder: of the course; formgrader is to be started in it.
        url: of the gradebook.
    """
    write(folder, {"nbgrader_config.py": CONFIG.format(root=str(folder.resolve()), url=url)})
    solved = masters()
    models = {f"{exercise}.ipynb": written(master) for exercise, master in solved.items()}
    write(folder / "source" / ASSIGNMENT, models)
    versions = {exercise: student_version(master) for exercise, master in solved.items()}
    for record in records:
        if not record.key:
            continue
        notebooks = {
            f"{exercise}.ipynb": json.dumps(_shown(version, record))
            for exercise, version in versions.items()
        }
        write(folder / "autograded" / student_id(record.student) / ASSIGNMENT, notebooks)


def harmless(text: str) -> str:
    """Return a student's Markdown so that nothing in it is HTML or a link.

    It is shown on a page that may change marks. A space after a sign changes no formula.

    >>> harmless("$a<b$, <b>, [x](javascript:1), &lt;, $1 < 2$")
    '$a< b$, < b>, [x] (javascript:1), & lt;, $1 < 2$'
    """
    return ACTIVE.sub(lambda match: f"{match[0]} ", text)


def _shown(version: Any, record: Record) -> dict[str, Any]:
    """Return the questions, the student's written answer, and what the marking said."""
    texts = record.texts or {}
    results = {f"{result.part}-check": result for result in record.results}
    cells = []
    for cell in version.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if cell.cell_type == "markdown":
            cells.append({**cell, "source": harmless(texts[name])} if name in texts else cell)
        elif name in results:
            output = {"output_type": "stream", "name": "stdout", "text": _said(results[name])}
            cells.append({**cell, "outputs": [output]})
    return {**version, "cells": cells}


def _said(result: PartResult) -> str:
    return f"{result.status}. {result.message}".strip()

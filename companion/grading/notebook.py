"""Cells of a notebook file, whatever state it is in; nothing in it is run or trusted."""

from __future__ import annotations

import codecs
import json
from dataclasses import dataclass
from typing import Any

MOST_BYTES = 2**25
# Commas and brackets bound how many Python objects a file becomes.
MOST_VALUES = 3_000_000
MOST_OTHER_CELLS = 5_000
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins as UTF-16's does
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class Unreadable(ValueError):
    """A file is not a notebook that can be read; says why."""


@dataclass(frozen=True)
class Cell:
    """A cell: its text, and how it may be recognized."""

    kind: str  # "code", "markdown", "raw"
    source: str
    grade_id: str | None  # nbgrader's name of the cell
    cell_id: str | None  # the notebook format's
    solution: bool = False  # to be filled in by the student
    graded: bool = False


def read(raw: bytes) -> list[Cell]:
    """Return a notebook's cells, of format 3 or 4.

    Args:
        raw: the file's bytes, in UTF-8, UTF-16 or UTF-32.

    Raises:
        Unreadable: it is too large, no JSON, or no notebook.

    >>> read(b'{"cells": [{"cell_type": "code", "source": ["x = 1\\\\n", "y = 2"]}]}')[0].source
    'x = 1\\ny = 2'
    """
    if len(raw) > MOST_BYTES:
        raise Unreadable(f"it is larger than {MOST_BYTES // 2**20} MB")
    text = _decoded(raw)
    if sum(map(text.count, ",[{")) > MOST_VALUES:
        raise Unreadable(f"it holds more than {MOST_VALUES:,} values")
    try:
        content = json.loads(text, parse_int=float)  # no number counts, and some are giant
    except (ValueError, RecursionError):
        raise Unreadable("it is not a notebook, or not a whole one (no JSON)") from None
    listed = _cells(content)
    if listed is None:
        raise Unreadable("it is not a notebook (no list of cells)")
    cells = [cell for cell in map(_cell, listed) if cell is not None]
    named = [cell.grade_id is not None for cell in cells]
    left = MOST_OTHER_CELLS
    kept = []
    for cell, has_name in zip(cells, named, strict=True):
        left -= not has_name
        if has_name or left >= 0:
            kept.append(cell)
    return kept[: 2 * MOST_OTHER_CELLS]


def _decoded(raw: bytes) -> str:
    for mark, name in BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            return raw.decode(name, "replace")
    return raw.decode("utf-8", "replace")


def _cells(content: Any) -> list[Any] | None:
    if not isinstance(content, dict):
        return None
    sheets = content.get("worksheets")  # format 3
    if "cells" not in content and isinstance(sheets, list):
        lists = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
        return [cell for one in lists if isinstance(one, list) for cell in one]
    cells = content.get("cells")
    return cells if isinstance(cells, list) else None


def _cell(content: Any) -> Cell | None:
    if not isinstance(content, dict):
        return None
    source = content.get("source", content.get("input", ""))  # format 3: code is "input"
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    if not isinstance(source, str):
        return None
    metadata = content.get("metadata")
    found = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    nbgrader = found if isinstance(found, dict) else {}
    return Cell(
        kind=_text(content.get("cell_type")) or "code",
        source=source,
        grade_id=_text(nbgrader.get("grade_id")),
        cell_id=_text(content.get("id")),
        solution=nbgrader.get("solution") is True,
        graded=nbgrader.get("grade") is True,
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None

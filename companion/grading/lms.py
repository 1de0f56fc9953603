"""How learning management systems name what students hand in, and who a name may stand for."""

from __future__ import annotations

import re
from pathlib import PurePath

# A student's folder in Moodle's download of all submissions.
MOODLE = re.compile(r"(?P<name>.*)_(?P<number>\d+)_assignsubmission_(?:file|onlinetext)_?")
# A file in Canvas's: all students' lie in one folder. No student's name holds "_12_" there.
CANVAS = re.compile(
    r"(?P<name>.*?)_(?:late_)?(?P<user>\d+)_(?P<attachment>\d+)_(?P<original>.+)",
    re.IGNORECASE | re.DOTALL,
)
ANONYMOUS = re.compile(r"(?P<name>anon)_(?P<user>\w{5})_(?P<attachment>\d+)_(?P<original>.+)")
CANVAS_STUDENT = re.compile(r"(?P<name>.*)_(?P<user>\d+)", re.DOTALL)  # as canvas_file says it


def canvas_file(name: str) -> tuple[str, int, str] | None:
    """Return a file's student, its number, and its own name; None if it is none of Canvas's.

    >>> canvas_file("doejane_LATE_12345_67890_20-1-1.ipynb")
    ('doejane_12345', 67890, '20-1-1.ipynb')
    >>> canvas_file("20-1.ipynb") is None
    True
    """
    match = ANONYMOUS.fullmatch(name) or CANVAS.fullmatch(name)
    if match is None:
        return None
    return f"{match['name']}_{match['user']}", int(match["attachment"][:18]), match["original"]


def moodle_student(name: str) -> tuple[str, str]:
    """Return a student's identifier in Moodle, where the folder's name tells it, and full name.

    >>> moodle_student("Ada Lovelace_4711_assignsubmission_file")
    ('Participant 4711', 'Ada Lovelace')
    >>> moodle_student("ada")
    ('', 'ada')
    """
    match = MOODLE.fullmatch(name)
    return (f"Participant {match['number']}", match["name"]) if match else ("", name)


def canvas_student(name: str) -> tuple[str, str]:
    """Return a student's number in Canvas, where the name tells it, and the name without it.

    Args:
        name: of a hand-in out of Canvas's download; elsewhere, such an end may be anything.

    >>> canvas_student("doejane_12345"), canvas_student("anon_aB3x9")
    (('12345', 'doejane'), ('', 'anon_aB3x9'))
    """
    match = CANVAS_STUDENT.fullmatch(name)
    return (match["user"], match["name"]) if match else ("", name)


def identities(name: str, canvas: bool) -> list[str]:
    """Return what a hand-in's name says of the student, what tells most first; then the name.

    Args:
        name: of the hand-in.
        canvas: it is out of Canvas's download.

    >>> identities("Ada Lovelace_4711_assignsubmission_file", canvas=False)[:2]
    ['Participant 4711', 'Ada Lovelace']
    >>> identities("group_7", canvas=False), identities("roe_7", canvas=True)
    (['group_7'], ['7', 'roe', 'roe_7'])
    """
    found = [*(canvas_student(name) if canvas else ()), *moodle_student(name), name]
    return list(dict.fromkeys(identity for identity in found if identity))


def suffix(name: str) -> str:
    """Return how a file's name ends, in small letters."""
    return PurePath(name).suffix.lower()

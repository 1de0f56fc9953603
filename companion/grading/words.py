"""The words that the desk's commands take, and its help."""

from __future__ import annotations

import argparse
from pathlib import Path

DESCRIPTION = """\
Hand out the exercises, and mark what comes back.

  1. companion-desk release handout.zip     what students get
  2. companion-desk grade submissions/      marks in desk/marks.csv
  3. companion-desk status                  how far it is, and what needs a look
  4. companion-desk feedback                a page per student in desk/feedback
  5. companion-desk export                  marks again, with what was marked by hand since
  6. companion-desk summary                 how the class did: marks and mistakes, with a picture
"""
EPILOG = """\
Automatic parts are marked in a sandbox, apart from what marks them. Written answers wait in
nbgrader's gradebook; to mark them by hand, start JupyterLab with nbgrader in desk/course, open
its Formgrader, and export again. The desk's folder also holds the secret from which the
hidden cases derive: keep it, and keep it to yourself.
"""
EXERCISE = """\
20-1 and so on (default: all); of a desk that has released some, only these count, in every total"""
SUBMISSIONS = """\
a folder with one folder, notebook or zip file per student, as a learning management system
exports it, whose names are the students'; the folder or zip file of Canvas's flat download, or
Moodle's zip file; or one student's folder or notebook"""
ROSTER = """\
the class's list as CSV, such as Canvas's or Moodle's; the ids that students typed in are held
against it, and what does not fit is reported (kept in the desk's folder)"""
UNSAFE = """\
mark without a sandbox where there is none: a student's code can then read and change
whatever you can"""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "student"), counted(0, "page")
    ('1 student', '0 pages')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


WRITERS = {  # where each writes if not told otherwise, and what
    "export": (
        "the desk's",
        "write tables: all parts, and totals for Canvas and Moodle, with marks by hand",
    ),
    "feedback": (
        "feedback in the desk's",
        "write a page for each student: what came out, and the likely mistake",
    ),
    "summary": (
        "the desk's",
        "how the class did: marks per part, misconceptions, hard parts, with a picture",
    ),
}


def parser() -> argparse.ArgumentParser:
    """Return what reads the words: .command, and what that takes."""
    made = argparse.ArgumentParser(
        "companion-desk",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    desk, book = _desk(), _book()
    text = "write the notebooks that students get"
    command = commands.add_parser("release", parents=[desk], help=text, description=text)
    command.add_argument("target", type=Path, help="a folder, or a file that ends in .zip")
    command.add_argument("exercises", nargs="*", metavar="EXERCISE", help=EXERCISE)
    text = "mark what students handed in; a second call marks only what has changed"
    _add_grade(commands.add_parser("grade", parents=[desk, book], help=text, description=text))
    text = "how each student and each part came out, and what needs a look"
    commands.add_parser("status", parents=[desk], help=text, description=text)
    for name, (where, text) in WRITERS.items():
        command = commands.add_parser(name, parents=[desk, book], help=text, description=text)
        command.add_argument("--to", type=Path, help=f"a folder (default: {where})")
    return made


def _desk() -> argparse.ArgumentParser:
    desk = argparse.ArgumentParser(add_help=False)
    desk.add_argument(
        "--desk", type=Path, default=Path("desk"), help="folder to keep marks in (default: desk)"
    )
    return desk


def _book() -> argparse.ArgumentParser:
    book = argparse.ArgumentParser(add_help=False)
    book.add_argument(
        "--db",
        metavar="URL",
        help="of nbgrader's gradebook (default: sqlite, gradebook.db in the desk's folder)",
    )
    return book


def _add_grade(command: argparse.ArgumentParser) -> None:
    command.add_argument("submissions", type=Path, help=SUBMISSIONS)
    command.add_argument(
        "--jobs", type=int, default=-1, help="students at a time (default: one per core)"
    )
    command.add_argument("--again", action="store_true", help="mark also what has not changed")
    command.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="of a dask scheduler whose workers see the same files, such as tcp://host:8786",
    )
    command.add_argument("--roster", type=Path, metavar="FILE", help=ROSTER)
    command.add_argument("--unsafe", action="store_true", help=UNSAFE)

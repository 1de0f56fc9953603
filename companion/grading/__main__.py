"""The instructor's desk: hand out the exercises, and mark what comes back."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from companion.grading.desk import Desk, Record, file_name

if TYPE_CHECKING:
    from companion.grading.gradebook import Written

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
STOPPED = 130  # what a shell calls a program that Ctrl-C has ended


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; return 0, or 1 with what is wrong on stderr."""
    arguments = _parser().parse_args(words)
    # What takes long to import, a command imports itself: help is there at once.
    from companion.grading.masters import Unfit
    from companion.grading.sandbox import Unavailable

    try:
        return int(arguments.run(arguments))
    except (Unavailable, Unfit, ValueError, OSError) as error:
        print(f"companion-desk: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "\nStopped. Nothing marked so far is lost: the same command goes on from here.",
            file=sys.stderr,
        )
        return STOPPED


def release(arguments: argparse.Namespace) -> int:
    """Write the students' notebooks."""
    from companion.grading.masters import release

    names = release(arguments.target)
    print(f"{arguments.target}: {len(names)} notebooks. No solution is in them; as they are, they")
    print("get no point, and the masters get all.")
    return 0


def grade(arguments: argparse.Namespace) -> int:
    """Mark a class and write its table."""
    from companion.grading.grade import grade
    from companion.grading.roster import KEPT, read_roster
    from companion.grading.sandbox import Sandbox

    desk = Desk(arguments.desk)
    sandbox = Sandbox(unsafe=arguments.unsafe)
    if arguments.roster:
        read_roster(arguments.roster)
        desk.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (desk.folder / KEPT).write_bytes(arguments.roster.read_bytes())
    graded = grade(
        arguments.submissions, desk, sandbox, arguments.jobs, arguments.again, arguments.dask
    )
    print(f"{len(graded.marked)} students marked, {len(graded.unchanged)} unchanged.")
    from companion.grading.course import write_course
    from companion.grading.gradebook import default_url, enter

    url = arguments.db or default_url(desk)
    write_course(enter(desk.records(), desk, url), desk.folder / "course", url)
    arguments.to = arguments.desk
    return export(arguments)


def status(arguments: argparse.Namespace) -> int:
    """Print each student's points, how each part came out, and what needs a look."""
    records = _records(arguments.desk)
    width = max(len(_plain(record.student)) for record in records)
    print(f"{'student':{width}}  points  written answers")
    for record in records:
        most = sum(result.max_points for result in record.results)
        points = f"{record.points}/{most}"
        print(f"{_plain(record.student):{width}}  {points:>6}  {len(record.texts or {})}")
    print("\npart     right  of  most frequent misconception")
    for part in dict.fromkeys(r.part for record in records for r in record.results):
        found = [r for record in records for r in record.results if r.part == part]
        right = sum(r.status == "right" for r in found)
        named = Counter(r.misconception for r in found if r.misconception)
        often = "".join(f"{name} ({count})" for name, count in named.most_common(1))
        print(f"{part:8} {right:5} {len(found):3}  {often}".rstrip())
    _print_problems(records, arguments.desk)
    return 0


def export(arguments: argparse.Namespace) -> int:
    """Write the tables of marks, with what was marked by hand since."""
    from companion.grading.export import write_all

    records = _records(arguments.desk)
    written = _written(arguments, records)
    files = write_all(records, written, arguments.to or arguments.desk)
    print(f"{len(records)} students: {', '.join(map(str, files))}")
    waiting = sum(one.waits for some in written.values() for one in some)
    if waiting:
        print(f"{waiting} written answers wait to be marked by hand; they count 0 until then.")
    _print_problems(records, arguments.desk)
    return 0


def feedback(arguments: argparse.Namespace) -> int:
    """Write a page for each student."""
    from companion.grading.feedback import page

    records = _records(arguments.desk)
    written = _written(arguments, records)
    folder = arguments.to or arguments.desk / "feedback"
    folder.mkdir(parents=True, exist_ok=True)
    for record in records:
        text = page(record, written.get(record.student, ()))
        (folder / f"{file_name(record.student)}.html").write_text(text, encoding="utf-8")
    print(f"{folder}: {len(records)} pages.")
    return 0


def summary(arguments: argparse.Namespace) -> int:
    """Print how the class did, and write it as tables, a picture and a page."""
    from companion.grading.summary import summarize, table, write_summary

    records = _records(arguments.desk)
    found = summarize(records, _written(arguments, records))
    print(table(found))
    files = write_summary(found, arguments.to or arguments.desk)
    print(f"\n{', '.join(map(str, files))}")
    return 0


def _written(arguments: argparse.Namespace, records: Sequence[Record]) -> dict[str, list[Written]]:
    from companion.grading.gradebook import default_url, written

    url = arguments.db or default_url(Desk(arguments.desk))
    return written([record.student for record in records], url)


def _records(folder: Path) -> list[Record]:
    records = Desk(folder).records()
    if not records:
        raise ValueError(f"{folder}: nobody is marked yet; companion-desk grade SUBMISSIONS")
    return records


def _print_problems(records: Sequence[Record], desk: Path) -> None:
    from companion.grading.roster import KEPT, misfits, read_roster

    roster = read_roster(desk / KEPT) if (desk / KEPT).exists() else None
    lines = [f"{record.student}: {problem}" for record in records for problem in record.problems]
    for line in lines + misfits(records, roster):
        print(_plain(line), file=sys.stderr)


def _plain(text: str) -> str:
    """Return a name as a terminal can show it, whatever is in it."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    return shown.encode("utf-8", "replace").decode()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "companion-desk",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    desk = argparse.ArgumentParser(add_help=False)
    desk.add_argument(
        "--desk", type=Path, default=Path("desk"), help="folder to keep marks in (default: desk)"
    )
    desk.add_argument(
        "--db",
        metavar="URL",
        help="of nbgrader's gradebook (default: sqlite, gradebook.db in the desk's folder)",
    )

    command = commands.add_parser("release", help="write the notebooks that students get")
    command.add_argument("target", type=Path, help="a folder, or a file that ends in .zip")
    command.set_defaults(run=release)

    text = "mark what students handed in; a second call marks only what has changed"
    command = commands.add_parser("grade", parents=[desk], help=text, description=text)
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
    command.set_defaults(run=grade)

    text = "how each student and each part came out, and what needs a look"
    command = commands.add_parser("status", parents=[desk], help=text, description=text)
    command.set_defaults(run=status)

    text = "write tables: all parts, and totals for Canvas and Moodle, with marks by hand"
    command = commands.add_parser("export", parents=[desk], help=text, description=text)
    command.add_argument("--to", type=Path, help="a folder (default: the desk's)")
    command.set_defaults(run=export)

    text = "write a page for each student: what came out, and the likely mistake"
    command = commands.add_parser("feedback", parents=[desk], help=text, description=text)
    command.add_argument("--to", type=Path, help="a folder (default: feedback in the desk's)")
    command.set_defaults(run=feedback)

    text = "how the class did: marks per part, frequent misconceptions, hard parts, with a picture"
    command = commands.add_parser("summary", parents=[desk], help=text, description=text)
    command.add_argument("--to", type=Path, help="a folder (default: the desk's)")
    command.set_defaults(run=summary)
    return parser


if __name__ == "__main__":
    sys.exit(main())

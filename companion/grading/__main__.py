"""The instructor's desk: hand out the exercises, and mark what comes back."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from companion.exercises import EXERCISES
from companion.grading.desk import Desk, Record, file_name
from companion.grading.words import counted, parser

if TYPE_CHECKING:
    from companion.grading.gradebook import Written
    from companion.grading.roster import Student

NO_FILTER = """\
companion-desk: there is no filter of system calls for this processor; the sandbox is made of
namespaces and limits alone"""
STOPPED = 130  # what a shell calls a program that Ctrl-C has ended


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; return 0, or 1 with what is wrong on stderr."""
    arguments = parser().parse_args(words)
    # What takes long to import, a command imports itself: help is there at once.
    from companion.grading.masters import Unfit
    from companion.grading.sandbox import Unavailable

    try:
        return COMMANDS[arguments.command](arguments)
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

    desk = Desk(arguments.desk)
    exercises = [name.replace(".", "-") for name in arguments.exercises]
    names = release(arguments.target, exercises or EXERCISES)
    if exercises or desk.released.exists():
        desk.release(exercises or EXERCISES)
    print(f"{arguments.target}: {counted(len(names), 'notebook')} with no line of a solution;")
    print("worth no point as released, and all with the masters' answers.")
    if desk.released.exists():
        print(f"What counts on this desk ({desk.released}): {', '.join(desk.exercises)}.")
    return 0


def grade(arguments: argparse.Namespace) -> int:
    """Mark a class and write its table."""
    from companion.grading.grade import grade
    from companion.grading.gradebook import opened
    from companion.grading.roster import KEPT, read_roster
    from companion.grading.sandbox import Sandbox
    from companion.grading.seccomp import program

    desk = Desk(arguments.desk)
    _say("Checking the sandbox and what has changed.")
    sandbox = Sandbox(unsafe=arguments.unsafe)
    if arguments.db:
        with opened(arguments.db):
            pass  # a wrong address is found before hours of marking, not after them
    if not sandbox.unsafe and program() is None:
        print(NO_FILTER, file=sys.stderr)
    if arguments.roster:
        if not arguments.roster.is_file():
            raise ValueError(f"{arguments.roster}: there is no such roster")
        read_roster(arguments.roster)
        desk.make()
        (desk.folder / KEPT).write_bytes(arguments.roster.read_bytes())
    graded = grade(
        arguments.submissions, desk, sandbox, arguments.jobs, arguments.again, arguments.dask
    )
    print(f"{counted(len(graded.marked), 'student')} marked, {len(graded.unchanged)} unchanged.")
    seen = {*graded.marked, *graded.unchanged}
    if before := [r.student for r in desk.records() if r.student not in seen]:
        print(f"On the desk from before, not among these: {', '.join(map(_plain, before))}.")
    _say("Entering marks in the gradebook.")
    from companion.grading.course import write_course
    from companion.grading.gradebook import default_url, enter

    url = arguments.db or default_url(desk)
    with desk.alone():
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
    from companion.grading.gradebook import waiting

    records = _records(arguments.desk)
    written = _written(arguments, records)
    folder = arguments.to or arguments.desk
    files = write_all(records, written, folder, _roster(arguments.desk) or ())
    print(f"{counted(len(records), 'student')}: {', '.join(map(str, files))}")
    if waits := sum(one.waits for some in written.values() for one in some):
        print(f"{waiting(waits)} to be marked by hand; no points until then.")
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
    print(f"{folder}: {counted(len(records), 'page')}.")
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

    desk = Desk(arguments.desk)
    url = arguments.db or default_url(desk)
    counts = desk.exercises
    found = written(records, url)
    return {name: [one for one in some if one.exercise in counts] for name, some in found.items()}


def _records(folder: Path) -> list[Record]:
    records = Desk(folder).counted()
    if not records:
        raise ValueError(f"{folder}: nobody is marked yet; companion-desk grade SUBMISSIONS")
    return records


def _print_problems(records: Sequence[Record], desk: Path) -> None:
    from companion.grading.roster import misfits

    roster = _roster(desk)
    lines = [f"{record.student}: {problem}" for record in records for problem in record.problems]
    for line in lines + misfits(records, roster):
        print(_plain(line), file=sys.stderr)


def _say(doing: str) -> None:
    """Say what takes a while."""
    print(doing, file=sys.stderr, flush=True)


def _roster(desk: Path) -> list[Student] | None:
    from companion.grading.roster import KEPT, read_roster

    return read_roster(desk / KEPT) if (desk / KEPT).exists() else None


def _plain(text: str) -> str:
    """Return a name as a terminal can show it, whatever is in it."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    return shown.encode("utf-8", "replace").decode()


COMMANDS = {run.__name__: run for run in (release, grade, status, export, feedback, summary)}

if __name__ == "__main__":
    sys.exit(main())

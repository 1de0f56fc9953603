"""Benchmark of the desk, beside nbgrader's own autograde of the same notebooks.

Seconds are of the clock, for two cores do the work. nbgrader grades one notebook after the other;
so that it may use both cores too, two courses of its own are graded side by side.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from companion.check import check
from companion.exercises import PARTS
from companion.exercises.part import arguments
from companion.grading import masters
from tests.zoo import RIGHT, WRONG, Animal

ROOT = Path(__file__).resolve().parent.parent
EIGHT = tuple(f"20-{k}" for k in range(1, 9))
CLASS = 200
STUDENTS_OF_NBGRADER = 2  # in each of two courses
GROWTH = (20, 200, 1000)
JOBS = 2
CALLS = 5
CONFIG = "c = get_config()\nc.CourseDirectory.root = {root!r}\n"
ATTEMPTS = 3  # two kernels that start at once may want the same port
RSS = re.compile(r"VmRSS:\s+(\d+) kB")


class Moment(NamedTuple):
    """How far a run of the desk was: students marked, seconds since its start, MB in use."""

    students: int
    seconds: float
    megabytes: float


def a_class(folder: Path, students: int, exercises: tuple[str, ...]) -> None:
    """Write the masters as a class of that many would hand them in."""
    texts = {name: masters.written(masters.masters()[name]) for name in exercises}
    for k in range(students):
        student = f"student-{k:04}"
        own = {f"{name}.ipynb": text.replace("your-id", student) for name, text in texts.items()}
        masters.write(folder / student, own)


def desk(submissions: Path, folder: Path, moments: tuple[int, ...]) -> Iterator[Moment]:
    """Grade a class by the command, and yield how it stands at some moments and at the end."""
    command = [sys.executable, "-m", "companion.grading", "grade", str(submissions)]
    command += ["--desk", str(folder), "--jobs", str(JOBS)]
    left, resident, students = [*moments], 0.0, 0
    start = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said) as run:
            while run.poll() is None:
                status = Path(f"/proc/{run.pid}/status").read_text()
                resident = max([resident, *(int(kb) / 1000 for kb in RSS.findall(status))])
                students = sum(1 for _ in (folder / "students").glob("*.json"))
                if left and students >= left[0]:
                    left.pop(0)
                    yield Moment(students, time.perf_counter() - start, resident)
                time.sleep(0.1)
        said.seek(0)
        assert run.returncode == 0, said.read().decode()
    yield Moment(students, time.perf_counter() - start, resident)


class Course:
    """A course of nbgrader's with the same exercises and some students."""

    def __init__(self, folder: Path, students: int) -> None:
        self.folder = folder
        masters.write(folder, {"nbgrader_config.py": CONFIG.format(root=str(folder))})
        source = masters.masters()
        texts = {f"{name}.ipynb": masters.written(source[name]) for name in EIGHT}
        masters.write(folder / "source" / "chapter-20", texts)
        a_class(folder / "handed-in", students, EIGHT)
        for one in (folder / "handed-in").iterdir():
            (folder / "submitted" / one.name).mkdir(parents=True)
            one.rename(folder / "submitted" / one.name / "chapter-20")
        finish(self.start("generate_assignment", "chapter-20"))

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command of nbgrader's."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return subprocess.Popen(
            [sys.executable, "-m", "nbgrader", *words],
            cwd=self.folder,
            env=os.environ | {"PATH": path},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def autograde(self, student: str = "*") -> subprocess.Popen[bytes]:
        """Start nbgrader's automatic grading."""
        return self.start("autograde", "chapter-20", "--force", f"--student={student}")

    def graded(self) -> int:
        """Return how many notebooks it has graded."""
        return len([*(self.folder / "autograded").glob("*/chapter-20/*.ipynb")])


def finish(*runs: subprocess.Popen[bytes]) -> None:
    """Wait for the end of processes, which must be a good one."""
    said = [run.communicate()[1] for run in runs]
    failed = [text.decode()[-2000:] for run, text in zip(runs, said, strict=True) if run.returncode]
    assert not failed, "\n".join(failed)


def nbgrader(courses: list[Course]) -> float:
    """Return nbgrader's submissions per minute, two courses side by side."""
    students = STUDENTS_OF_NBGRADER * len(courses)
    for attempt in range(ATTEMPTS):
        start = time.perf_counter()
        try:
            finish(*[course.autograde() for course in courses])
        except AssertionError:
            if attempt == ATTEMPTS - 1:
                raise
            continue
        seconds = time.perf_counter() - start
        break
    assert sum(course.graded() for course in courses) == students * len(EIGHT)
    return 60 * students / seconds


def nbgrader_alone(course: Course) -> float:
    """Return nbgrader's submissions per minute as it is, from one student."""
    start = time.perf_counter()
    finish(course.autograde("student-0000"))
    return 60 / (time.perf_counter() - start)


def speed(folder: Path) -> Iterator[tuple[str, float, float]]:
    """Yield (work, nbgrader's submissions per minute, the desk's), measured in turn."""
    courses = [Course(folder / f"course-{k}", STUDENTS_OF_NBGRADER) for k in range(2)]
    a_class(folder / "class", CLASS, EIGHT)
    before = nbgrader(courses)
    (end,) = desk(folder / "class", folder / "desk", ())
    ours = 60 * CLASS / end.seconds
    after = nbgrader(courses)
    yield (
        f"two courses side by side, {2 * STUDENTS_OF_NBGRADER} students",
        ((before + after) / 2),
        ours,
    )
    yield "as it is, 1 student", nbgrader_alone(courses[0]), ours


def self_check_seconds() -> dict[str, float]:
    """Return the median time from a call with a right answer to what it says, by part."""
    taken = {}
    for animal in {animal.part: animal for animal in RIGHT}.values():
        answer = answer_of(animal, "bench")
        calls = []
        for _ in range(CALLS + 1):  # the first one warms up: an answer may import PyTorch
            start = time.perf_counter()
            text = repr(check(animal.part, answer, "bench"))
            calls.append(time.perf_counter() - start)
            assert "right" in text
        taken[animal.part] = median(calls[1:])
    return taken


def answer_of(animal: Animal, student: str) -> object:
    """Return what a student would hand to the check."""
    part = PARTS[animal.part]
    if part.kind == "function":
        return animal.answer
    return animal.answer(**arguments(part.draw(student)[0]))


def wrong_ones() -> tuple[int, int, int]:
    """Return how many wrong solutions are caught, how many of them named, and of how many."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of them divide by zero
        verdicts = [(a, check(a.part, answer_of(a, "bench"), "bench")) for a in WRONG]
    caught = [(a, verdict) for a, verdict in verdicts if verdict.status == "wrong"]
    named = sum(verdict.misconception == animal.name for animal, verdict in caught)
    return len(caught), named, len(WRONG)


def attacks(folder: Path) -> tuple[int, int]:
    """Return how many attacks got the mark that they must get and touched nothing, of how many."""
    report = folder / "attacks.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [f"--junitxml={report}", "tests/test_attacks.py"]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    cases = [
        c for c in ElementTree.parse(report).iter("testcase") if "_attack[" in c.attrib["name"]
    ]
    return sum(not len(case) for case in cases), len(cases)


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"exercises 20.1 to 20.8 of a class of {CLASS}, submissions per minute, {JOBS} cores")
        print(f"{'nbgrader autograde':<42}{'nbgrader':>10}{'desk':>12}{'times faster':>14}")
        for work, theirs, ours in speed(folder):
            print(f"{work:<42}{theirs:>10.1f}{ours:>12.1f}{ours / theirs:>14.1f}", flush=True)
        taken = self_check_seconds()
        worst = max(taken, key=lambda part: taken[part])
        print(
            f"\nself-check: median {1000 * median(taken.values()):.0f} ms over {len(taken)} parts",
            end="",
        )
        print(f", worst {1000 * taken[worst]:.0f} ms ({worst})")
        caught, named, of = wrong_ones()
        print(f"wrong solutions: {caught} caught and {named} named, of {of}", flush=True)
        survived, tried = attacks(folder)
        print(f"attacks survived: {survived} of {tried}\n", flush=True)
        print(f"growth of one run of the command, exercise 20.1 alone, {JOBS} cores")
        print(f"{'submissions':<42}{'seconds each':>14}{'desk':>12}")
        a_class(folder / "growth", GROWTH[-1], EIGHT[:1])
        for k, moment in enumerate(desk(folder / "growth", folder / "growing", GROWTH)):
            done = "marked" if k < len(GROWTH) else "in the gradebook and the tables, too"
            name, each = f"{moment.students:,} {done}", moment.seconds / moment.students
            print(f"{name:<42}{each:>14.3f}{moment.megabytes:>9.0f} MB", flush=True)


if __name__ == "__main__":
    main()

"""How a class did: marks per part, which misconceptions and how often, which parts are too hard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from companion.exercises import EXERCISES, PARTS
from companion.grading.desk import Record
from companion.grading.export import number, possible, total, write_table
from companion.grading.gradebook import Written, waiting
from companion.grading.marker import UNTRIED
from companion.grading.words import counted

HARD = 0.5  # a part is hard if those who tried it have less than this share of its points
FEWEST_TRIED = 5  # below which nothing is said of how hard a part is
WIDTH_OF_TITLE = 44


@dataclass(frozen=True)
class PartSummary:
    """How a class did in one part.

    Args:
        part: the part's id, or the exercise's with "-written".
        title: what it asks for.
        max_points: that can be reached.
        students: of the class.
        tried: students who handed in an answer.
        right: students with full points.
        marked: students whose mark is there: all, but for written answers that wait.
        points: of all students together.
        mistakes: how many students were told which misconception.
        statuses: how many students' answers came to which status.
    """

    part: str
    title: str
    max_points: float
    students: int
    tried: int
    right: int
    marked: int
    points: float
    mistakes: Counter[str]
    statuses: Counter[str]

    @property
    def mean(self) -> float:
        """Return the mean points of those whose mark is there."""
        return self.points / self.marked if self.marked else 0.0

    @property
    def hard(self) -> bool:
        """Say whether those who tried it have less than half of its points."""
        enough = self.marked == self.students and self.tried >= FEWEST_TRIED
        return enough and self.points < HARD * self.tried * self.max_points


@dataclass(frozen=True)
class Summary:
    """How a class did.

    Args:
        parts: of those exercises that anyone has tried, in their order.
        totals: each student's points.
        most: the points that can be reached, in exercises that no one has tried as well.
        waiting: written answers that wait to be marked by hand.
    """

    parts: Sequence[PartSummary]
    totals: Sequence[float]
    most: float
    waiting: int


def summarize(
    records: Sequence[Record], written: Mapping[str, Sequence[Written]] | None = None
) -> Summary:
    """Count a class's marks.

    Args:
        records: of the students; at least one.
        written: how their written parts stand, by student.
    """
    by_hand = written or {}
    parts: list[PartSummary] = []
    for exercise in EXERCISES:
        inside = [part for part in PARTS if part.rpartition("-")[0] == exercise]
        new = [_automatic(part, records) for part in inside]
        ones = [one for some in by_hand.values() for one in some if one.exercise == exercise]
        new += [_by_hand(exercise, ones, len(records))] if ones else []
        parts += new if any(one.tried for one in new) else []
    return Summary(
        parts,
        [total(record, by_hand.get(record.student, ()))[0] for record in records],
        possible(records, by_hand),
        sum(one.waits for some in by_hand.values() for one in some),
    )


def _automatic(part: str, records: Sequence[Record]) -> PartSummary:
    found = [r for record in records for r in record.results if r.part == part]
    statuses = Counter[str](r.status for r in found)
    return PartSummary(
        part,
        PARTS[part].title,
        PARTS[part].points,
        students=len(records),
        tried=sum(count for status, count in statuses.items() if status not in UNTRIED),
        right=statuses["right"],
        marked=len(records),
        points=sum(r.points for r in found),
        mistakes=Counter(r.misconception for r in found if r.misconception),
        statuses=statuses,
    )


def _by_hand(exercise: str, ones: Sequence[Written], students: int) -> PartSummary:
    statuses = Counter[str](one.status for one in ones)
    return PartSummary(
        f"{exercise}-written",
        "written part",
        ones[0].max_points,
        students=students,
        tried=sum(one.status not in UNTRIED for one in ones),
        right=sum(one.status == "marked" and one.points >= one.max_points for one in ones),
        marked=students - statuses["waits"],
        points=sum(one.points for one in ones if not one.waits),
        mistakes=Counter(),
        statuses=statuses,
    )


def table(summary: Summary) -> str:
    """Return the summary as a terminal shows it."""
    points = sorted(summary.totals)
    middle = (points[(len(points) - 1) // 2] + points[len(points) // 2]) / 2
    lines = [
        f"{counted(len(points), 'student')}, {number(summary.most)} points: "
        f"median {number(middle)}, from {number(points[0])} to {number(points[-1])}"
    ]
    if summary.waiting:
        lines.append(f"{waiting(summary.waiting)} to be marked by hand")
    lines.append(
        f"\n{'part':17}{'tried':>6}{'right':>6}{'mean':>6}  {'of':3} most frequent mistake"
    )
    lines += map(_line, summary.parts)
    hard = [f"  {one.part:16} {one.title}" for one in summary.parts if one.hard]
    lines.append("\nhard parts (those who tried have less than half of the points)")
    lines += hard or ["  none"]
    lines.append("\nmistakes, by students")
    lines += [f"  {n:4}  {part:12} {name}" for part, name, n in mistakes(summary)] or ["  none"]
    return "\n".join(lines)


def _line(one: PartSummary) -> str:
    often = "".join(f"{name} ({count})" for name, count in one.mistakes.most_common(1))
    mean = f"{one.mean:.1f}" if one.marked else ""
    row = f"{one.part:17}{one.tried:6}{one.right:6}{mean:>6}  {number(one.max_points)!s:3} {often}"
    return row.rstrip()


def mistakes(summary: Summary) -> list[tuple[str, str, int]]:
    """Return (part, misconception, students), the most frequent ones first."""
    found = [(one.part, name, n) for one in summary.parts for name, n in one.mistakes.items()]
    return sorted(found, key=lambda row: (-row[2], row[0], row[1]))


def write_summary(summary: Summary, folder: Path) -> list[Path]:
    """Write summary.csv, mistakes.csv, summary.png and summary.html, and return their paths."""
    from companion.grading.summary_page import draw, page, png

    folder.mkdir(parents=True, exist_ok=True)
    statuses = list(dict.fromkeys(status for one in summary.parts for status in one.statuses))
    head = ("part", "title", "students", "tried", "right", "mean points", "max points", "hard")
    rows = [
        (
            *(one.part, one.title, one.students, one.tried, one.right),
            *(round(one.mean, 3), number(one.max_points), "hard" if one.hard else ""),
            *(one.statuses[status] for status in statuses),
        )
        for one in summary.parts
    ]
    picture = png(draw(summary))
    files = [
        write_table(folder / "summary.csv", (*head, *statuses), rows),
        write_table(
            folder / "mistakes.csv", ("part", "misconception", "students"), mistakes(summary)
        ),
        folder / "summary.png",
        folder / "summary.html",
    ]
    files[2].write_bytes(picture)
    files[3].write_text(page(summary, picture), encoding="utf-8")
    return files

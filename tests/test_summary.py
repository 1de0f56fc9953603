"""The class's summary: right counts, what is hard, and a page that shows text as text."""

from __future__ import annotations

import csv
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.image import imread

from companion.exercises import PARTS
from companion.grading.desk import Record
from companion.grading.gradebook import Written
from companion.grading.marker import PartResult
from companion.grading.summary import mistakes, summarize, table, write_summary
from companion.grading.summary_page import KINDS, alt, draw, page

# What was released, in this class.
OF_20_1 = {part.id: part.points for part in PARTS.values() if part.id.startswith("20-1-")}


def record(student: str, **came_out: str) -> Record:
    """A student; by part (20_1_a=), a status or the name of a mistake; the rest is missing."""
    results = []
    for part, points in OF_20_1.items():
        what = came_out.get(part.replace("-", "_"), "missing")
        right = what == "right"
        if right or what in ("missing", "not attempted", "error"):
            results.append(PartResult(part, points if right else 0, points, what))
        else:
            results.append(PartResult(part, 0, points, "wrong", what))
    return Record(student, student, "key", results)


def a_class() -> list[Record]:
    """Ten students: b is hard, c has been tried by too few to tell."""
    good = {"20_1_a": "right", "20_1_b": "right", "20_1_c": "right"}
    return [
        *(record(f"good {k}", **good) for k in range(3)),
        *(record(f"one {k}", **{"20_1_a": "right", "20_1_b": "no <baseline>"}) for k in range(4)),
        record("two", **{"20_1_a": "transposed", "20_1_b": "sign", "20_1_c": "error"}),
        record("three", **{"20_1_a": "transposed", "20_1_b": "not attempted"}),
        record("none"),
    ]


def by_hand() -> dict[str, list[Written]]:
    marked = [Written("20-1", points, 6, "marked") for points in (6, 3, 4.5)]
    waits = Written("20-1", 0, 6, "waits")
    return {
        **{f"good {k}": [one] for k, one in enumerate(marked)},
        **{f"one {k}": [waits] for k in range(2)},
        "none": [Written("20-1", 0, 6, "not attempted")],
    }


def test_counts_are_those_of_the_class():
    a, b, c, d = summarize(a_class()).parts  # nobody has tried another exercise
    assert (a.tried, a.right, a.points, a.mean) == (9, 7, 14, 1.4)
    assert dict(a.mistakes) == {"transposed": 2}
    assert (b.tried, b.right, b.mean) == (8, 3, 0.6)
    assert dict(b.mistakes) == {"no <baseline>": 4, "sign": 1}
    assert (c.tried, c.right) == (4, 3)
    assert [one.hard for one in (a, b, c)] == [False, True, False]
    assert (d.part, d.tried, d.hard) == ("20-1-d", 0, False)


def test_mistakes_come_with_the_most_frequent_first():
    assert mistakes(summarize(a_class())) == [
        ("20-1-b", "no <baseline>", 4),
        ("20-1-a", "transposed", 2),
        ("20-1-b", "sign", 1),
    ]


def test_written_parts_count_once_they_are_marked():
    summary = summarize(a_class(), by_hand())
    (one,) = (one for one in summary.parts if one.part == "20-1-written")
    assert (one.tried, one.right, one.marked, one.points) == (5, 1, 8, 13.5)
    assert one.mean == 13.5 / 8
    assert summary.waiting == 2
    automatic = {"good": 7, "one": 2, "two": 0, "three": 0, "none": 0}
    assert sorted(summary.totals) == sorted(
        [7 + 6, 7 + 3, 7 + 4.5, *[automatic["one"]] * 4, 0, 0, 0]
    )
    assert summary.most == 2 + 2 + 3 + 2 + 6
    others = [Record("x", "x", "key", [PartResult("20-5-a", 0, 4, "missing")])]
    assert summarize(others).most == 4  # released, if tried by nobody


def test_the_table_says_the_median_what_is_hard_and_what_waits():
    shown = table(summarize(a_class(), by_hand()))
    assert "10 students, 15 points: median 2, from 0 to 13" in shown
    assert "2 written answers wait" in shown
    assert "20-1-a                9     7   1.4  2   transposed (2)\n" in shown
    hard = shown.partition("hard parts")[2].partition("mistakes, by students")[0]
    assert [line.split()[0] for line in hard.splitlines()[1:] if line] == ["20-1-b"]
    assert shown.endswith("     1  20-1-b       sign")


def test_the_tables_are_those_that_are_printed(tmp_path):
    files = write_summary(summarize(a_class()), tmp_path / "new")
    names = ["summary.csv", "mistakes.csv", "summary.png", "summary.html"]
    assert [file.name for file in files] == names
    tables = []
    for file in files[:2]:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            tables.append([*csv.DictReader(opened)])
    a, b, *_ = tables[0]
    assert (a["tried"], a["right"], a["mean points"], a["hard"]) == ("9", "7", "1.4", "")
    assert (b["wrong"], b["not attempted"], b["missing"], b["hard"]) == ("5", "1", "1", "hard")
    assert [row["part"] for row in tables[0]] == ["20-1-a", "20-1-b", "20-1-c", "20-1-d"]
    assert tables[1][0] == {"part": "20-1-b", "misconception": "no <baseline>", "students": "4"}
    assert imread(files[2]).shape[1] > 800


def test_the_picture_shows_the_shares():
    figure = draw(summarize(a_class()))
    left, right, names, totals = figure.axes
    bars = {
        kind: [*left.containers[k], *right.containers[k]][:3] for k, (kind, _) in enumerate(KINDS)
    }
    widths = {kind: [bar.get_width() for bar in some] for kind, some in bars.items()}
    np.testing.assert_allclose(widths["right"], [70, 30, 30])
    np.testing.assert_allclose(widths["mistake named"], [20, 50, 0])
    np.testing.assert_allclose(widths["otherwise wrong"], [0, 0, 10])
    np.testing.assert_allclose(widths["not tried"], [10, 20, 60])
    labels = [label.get_text() for ax in (left, right) for label in ax.get_yticklabels()]
    assert labels == ["20-1-a", "20-1-b hard", "20-1-c", "20-1-d"]
    assert [bar.get_width() for bar in names.containers[0]] == [4, 2, 1]
    assert sum(bar.get_height() for bar in totals.patches) == 10


def test_all_texts_of_the_picture_fit_in_it_and_none_covers_another():
    figure = draw(summarize(a_class()))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    boxes = []
    for ax in figure.axes:
        low, high = sorted(ax.get_ylim())  # Matplotlib keeps ticks beyond, and does not draw them
        ticks = [one for one in ax.get_yticklabels() if low <= one.get_position()[1] <= high]
        texts = [one for one in (*ticks, *ax.texts, ax.title, ax.xaxis.label) if one.get_text()]
        boxes += [text.get_window_extent(renderer) for text in texts]
    whole = figure.bbox
    assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 for box in boxes)
    shrunk = [box.shrunk(0.95, 0.8) for box in boxes]
    assert not any(one.overlaps(other) for k, one in enumerate(shrunk) for other in shrunk[k + 1 :])


class Page(HTMLParser):
    """What a page holds: its tags, the picture's text, and the text that is shown."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.alt = self.shown = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.alt += dict(attrs).get("alt") or ""

    def handle_data(self, data: str) -> None:
        self.shown += data


def test_the_page_shows_names_as_text_and_says_what_the_picture_shows():
    summary = summarize(a_class())
    found = Page(page(summary, b"picture"))
    assert "baseline" not in found.tags
    assert "no <baseline>" in found.shown
    assert found.alt == alt(summary)
    assert "hard parts: 20-1-b" in found.alt
    assert "20-1-b, no <baseline>: 4 students" in found.alt


def test_a_class_that_tried_nothing(tmp_path):
    summary = summarize([record("none"), record("nobody")])
    assert "median 0, from 0 to 0" in table(summary)
    assert all(file.stat().st_size for file in write_summary(summary, Path(tmp_path)))

"""A page per student: what was tried, what came out, and the likely mistake.

Whatever is a student's own text, it is shown as text. Hidden cases and what is right are in no
record, so they can be on no page.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from companion.exercises import EXERCISES, PARTS
from companion.grading.desk import Record
from companion.grading.export import number, total
from companion.grading.gradebook import Written, waiting
from companion.grading.marker import UNTRIED, PartResult

# Nothing is fetched, and nothing could run.
HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>Feedback for {student}</title>
<style>
body {{ font: 16px/1.5 sans-serif; max-width: 50em; margin: 2em auto; padding: 0 1em; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; vertical-align: top; padding: .3em .8em .3em 0;
  border-top: 1px solid #ccc; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; background: #f4f4f4; padding: .5em; }}
</style>
</head>
<body>
<h1>Feedback for {student}</h1>
<p>{points} of {most} points{waiting}. {own}</p>
"""
OWN = "Your numbers derive from the id <b>{id}</b>."
SEVERAL = "You typed several ids; the numbers of each exercise derive from its own."
NOTHING = {
    frozenset({"missing"}): "Nothing was handed in",
    frozenset({"unreadable"}): "The notebook could not be read",
}
TABLE = """<table>
<tr><th scope="col">Part</th><th scope="col">Points</th><th scope="col">What came out</th></tr>
"""


def page(record: Record, written: Sequence[Written] = ()) -> str:
    """Return a student's page, in HTML.

    Args:
        record: what the marking gave.
        written: how the written parts stand.
    """
    points, most = total(record, written)
    waits = sum(one.waits for one in written)
    several = len(record.typed) > 1
    lines = [
        HEAD.format(
            student=_text(record.student),
            points=number(points),
            most=number(most),
            waiting=f"; {waiting(waits)} to be marked" if waits else "",
            own=SEVERAL if several else OWN.format(id=_text(record.id)),
        )
    ]
    lines += [f"<p>{_text(problem)}</p>\n" for problem in record.problems]
    for exercise in EXERCISES:
        results = [r for r in record.results if r.part.rpartition("-")[0] == exercise]
        ones = [one for one in written if one.exercise == exercise]
        if not results and not ones:
            continue
        name = exercise.replace("20-", "Exercise 20.").replace("further-", "Further exercise ")
        lines.append(f"<h2>{name}</h2>\n")
        if several and exercise in record.ids:
            lines.append(f"<p>{OWN.format(id=_text(record.ids[exercise]))}</p>\n")
        lines.append(_came_out(results, ones))
    return "".join([*lines, "</body>\n</html>\n"])


def _came_out(results: Sequence[PartResult], written: Sequence[Written]) -> str:
    """Return an exercise's table, or a line if nothing in it was tried."""
    both: list[PartResult | Written] = [*results, *written]
    statuses = frozenset(one.status for one in both)
    if statuses <= UNTRIED:
        what = NOTHING.get(statuses, "Nothing was attempted")
        return f"<p>{what}: 0 of {number(sum(one.max_points for one in both))} points.</p>\n"
    return "".join([TABLE, *map(_part_row, results), *map(_written_row, written), "</table>\n"])


def _part_row(result: PartResult) -> str:
    title = PARTS[result.part].title if result.part in PARTS else ""
    printed = f"<pre>{_text(result.printed)}</pre>" if result.printed.strip() else ""
    return (
        f"<tr><td>{_text(result.part)} {_text(title)}</td>"
        f"<td>{result.points} of {result.max_points}</td>"
        f"<td><b>{_text(result.status)}</b>. {_text(result.message)}{printed}</td></tr>\n"
    )


def _written_row(one: Written) -> str:
    points = f"{number(one.points)} of {number(one.max_points)}"
    return (
        f"<tr><td>{_text(one.exercise)} written part</td><td>{'' if one.waits else points}</td>"
        f"<td><b>{_text(one.status)}</b>. {_text(one.comment)}</td></tr>\n"
    )


def _text(text: str) -> str:
    """Return a text as HTML shows it, without what no page may hold."""
    shown = "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
    return escape(shown)

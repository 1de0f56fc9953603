"""Student notebooks made from the exercises' masters, and proof that they give nothing away."""

from __future__ import annotations

import re
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import jupytext  # type: ignore[import-untyped]
import nbformat

from companion.exercises import EXERCISES, PARTS
from companion.grading.collect import answers
from companion.grading.marker import PartResult, mark
from companion.grading.notebook import Cell, read
from companion.grading.sandbox import Sandbox

BOOK = Path(__file__).resolve().parents[2] / "book" / "exercises"
METADATA = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}
SOLUTION = re.compile(
    r"^(?P<indent> *)(?P<mark>###|===) BEGIN SOLUTION(?: ===)?\n"
    r".*?^ *(?P=mark) END SOLUTION(?: ===)?(?:\n|\Z)",
    re.MULTILINE | re.DOTALL,
)
MARKER = re.compile(r"(?:###|===) (BEGIN|END) SOLUTION")
SECTION = re.compile(r"\[(?P<text>[^\[\]]+)\]\(\.\./\d\d-(?P<name>[\w-]+)\.ipynb\)")
STUB = "{indent}# Your code here.\n{indent}raise NotImplementedError\n"
NAMES = {part.id: part.name for part in PARTS.values()}
EXAMPLE = "ada"  # a student's id, for whom masters and student versions are marked


class Unfit(Exception):
    """A master or a student version must not be released; says why, a line per problem."""


def masters() -> dict[str, Any]:
    """Return the exercises' notebooks with their solutions, by exercise.

    Raises:
        Unfit: there are none beside this package.
    """
    missing = [exercise for exercise in EXERCISES if not (BOOK / f"{exercise}.md").is_file()]
    if missing:
        raise Unfit(f"{BOOK}: no {', '.join(missing)}; run this in a copy of the whole repository")
    return {
        exercise: _named(exercise, jupytext.read(BOOK / f"{exercise}.md", fmt="md:myst"))
        for exercise in EXERCISES
    }


def student_version(master: Any) -> Any:
    """Return a master's notebook with stubs in place of the solutions.

    A function's solution becomes a NotImplementedError; other solutions leave nothing behind.
    """
    notebook = deepcopy(master)
    for cell in notebook.cells:
        cell.source = SOLUTION.sub(_stub, cell.source).strip()
    return notebook


def student_versions() -> dict[str, Any]:
    """Return the students' notebooks, by exercise.

    Raises:
        Unfit: a line of a solution is left in one of them.
    """
    found = {exercise: (one, student_version(one)) for exercise, one in masters().items()}
    problems = [f"{exercise}: {leak}" for exercise, pair in found.items() for leak in leaks(*pair)]
    if problems:
        raise Unfit("\n".join(problems))
    return {exercise: version for exercise, (_, version) in found.items()}


def released() -> dict[str, list[Cell]]:
    """Return the cells of the students' notebooks, by exercise, as they are collected by."""
    return {name: read(written(version).encode()) for name, version in student_versions().items()}


def leaks(master: Any, version: Any) -> list[str]:
    """Return what of a master's solutions is in a student version: lines, markers, outputs.

    A line of a solution may also be handed out in another cell, as often as the master does.
    """
    inside, outside = Counter[str](), Counter[str]()
    for cell in master.cells:
        for line, solution in _lines(cell.source):
            (inside if solution else outside)[line] += 1
    seen = Counter(line.strip() for cell in version.cells for line in cell.source.splitlines())
    found = [
        f"a line of a solution: {line}" for line in inside if line and seen[line] > outside[line]
    ]
    text = written(version)
    found += ["a marker of a solution"] if MARKER.search(text) else []
    found += ["an output"] if any(cell.get("outputs") for cell in version.cells) else []
    return found


def check_marks(student: str = EXAMPLE) -> list[str]:
    """Mark the masters and the student versions; a line per part that is not as it should be.

    A master must get all points, and what is released none.
    """
    solved, empty = masters(), student_versions()
    cells = {name: read(written(version).encode()) for name, version in empty.items()}
    short = [
        f"{result.part}: the master's answer is {_said(result)}"
        for result in _marked(solved, cells, student)
        if result.points != result.max_points
    ]
    return short + [
        f"{result.part}: what students get is {_said(result)}"
        for result in _marked(empty, cells, student)
        if result.points or result.status != "not attempted"
    ]


def release(target: Path, exercises: Sequence[str] = EXERCISES) -> list[str]:
    """Write the students' notebooks into a folder or a zip file, and return their names.

    Args:
        target: a folder, made if need be; or a file whose name ends in .zip.
        exercises: to be released.

    Raises:
        ValueError: there is no such exercise.
        Unfit: a solution would be given away, or the marks are not as they should be.
    """
    if unknown := [name for name in exercises if name not in EXERCISES]:
        raise ValueError(f"no exercise {', '.join(unknown)}; there are {', '.join(EXERCISES)}")
    versions = student_versions()
    if problems := check_marks():
        raise Unfit("\n".join(problems))
    texts = {
        f"{exercise}.ipynb": SECTION.sub(_without_link, written(versions[exercise]))
        for exercise in exercises
    }
    if target.suffix == ".zip":
        target.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in texts.items():
                archive.writestr(zipfile.ZipInfo(name), text)
    else:
        write(target, texts)
    return list(texts)


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write files into a folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def written(notebook: Any) -> str:
    """Return a notebook's file, the same on every machine."""
    return str(nbformat.writes(notebook)) + "\n"  # type: ignore[no-untyped-call]


def _named(exercise: str, notebook: Any) -> Any:
    """Give a master's cells ids that stay, and lock those that are not the student's."""
    notebook.metadata = nbformat.from_dict(METADATA)  # type: ignore[no-untyped-call]
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for position, cell in enumerate(notebook.cells):
        nbgrader = cell.metadata.get("nbgrader", {})
        cell.id = nbgrader.get("grade_id") or f"{exercise}-{position:03}"
        if nbgrader:
            cell.metadata["deletable"] = False
        if nbgrader.get("locked"):
            cell.metadata["editable"] = False
    return notebook


def _stub(match: re.Match[str]) -> str:
    return STUB.format(indent=match["indent"]) if match["indent"] else ""


def _without_link(match: re.Match[str]) -> str:
    """Name a section instead of linking to it: a handout comes without the sections."""
    return f"{match['text']} ({match['name'].replace('-', ' ')})"


def _lines(source: str) -> Iterator[tuple[str, bool]]:
    """Yield a cell's lines, stripped, and whether they belong to a solution.

    Raises:
        Unfit: a solution's end without a begin, or the other way round.
    """
    inside = False
    for line in source.splitlines():
        marker = MARKER.search(line)
        if marker:
            if inside == (marker[1] == "BEGIN"):
                raise Unfit(f"markers of solutions do not match at: {line.strip()}")
            inside = not inside
        else:
            yield line.strip(), inside
    if inside:
        raise Unfit("a solution has no end")


def _marked(
    notebooks: Mapping[str, Any], cells: Mapping[str, list[Cell]], student: str
) -> list[PartResult]:
    """Return the marks of an exercise's own notebooks, handed in as a student would."""
    with tempfile.TemporaryDirectory() as folder:
        texts = {f"{name}.ipynb": written(notebook) for name, notebook in notebooks.items()}
        write(Path(folder), texts)
        found = answers(Path(folder), cells, NAMES)
        # The masters' own code: it may run without a sandbox where there is none.
        return mark(found, PARTS.values(), student, "release", Sandbox(unsafe=True))


def _said(result: PartResult) -> str:
    return f"{result.status}, {result.points} of {result.max_points} points. {result.message}"

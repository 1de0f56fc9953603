"""The answer cells in what a student handed in, put in their places in the released notebooks.

Only answer cells count, and what is in them: everything else is the released notebook's own. A
cell is recognized by nbgrader's name for it; without one by its id; at last by what it defines.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath

from companion.exercises.own import PLACEHOLDER
from companion.grading import files
from companion.grading.definitions import defined
from companion.grading.notebook import Cell, Unreadable, read

STUDENT = "student"  # the name of the cell in which the student's id is typed in
TYPED = re.compile(r"""^student\s*=\s*(["'])([^"'\n]{1,100})\1""", re.MULTILINE)
# What one student's notebooks may hold, so that to look through them takes no one's time.
MOST_CHARACTERS = 1_000_000  # of a cell
MOST_TEXT = 8_000_000  # of all cells
MOST_CELLS = 20_000
TOO_LONG = f"which has more than {MOST_CHARACTERS:,} characters"
TOO_MUCH = f"more than {MOST_TEXT:,} characters in all cells, or more than {MOST_CELLS:,} cells"


@dataclass(frozen=True)
class Step:
    """A cell to run: the student's own, in one or several pieces, or the released one."""

    id: str
    own: bool
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Answers:
    """What one student handed in.

    Args:
        steps: by exercise, its code cells in the released order. An answer cell that is as
            released has its released text and own=False; one that is missing is left out.
        others: by exercise, the student's further code cells, which may define what an answer uses.
        texts: the written answers that differ from what was released, by the cell's name.
        problems: what could not be read.
        ids: by exercise, the id that the student typed in, where there is one.
        unreadable: the exercises whose notebook, by its name, could not be read.
    """

    steps: Mapping[str, tuple[Step, ...]]
    others: Mapping[str, tuple[str, ...]]
    texts: Mapping[str, str]
    problems: tuple[str, ...] = ()
    ids: Mapping[str, str] = field(default_factory=dict)
    unreadable: frozenset[str] = frozenset()

    @property
    def typed(self) -> list[str]:
        """Return the ids that the student typed in, the most frequent one first."""
        return [own for own, _ in Counter(self.ids.values()).most_common()]


@dataclass(frozen=True)
class _Notebook:
    name: str
    cells: list[Cell]

    @cached_property
    def defining(self) -> dict[str, list[Cell]]:
        """The cells that define a name, by the name."""
        found: dict[str, list[Cell]] = defaultdict(list)
        for cell in self.cells:
            for name in defined(cell.source):
                found[name].append(cell)
        return found


def answers(
    path: Path,
    released: Mapping[str, Sequence[Cell]],
    names: Mapping[str, str],
    only: Mapping[str, str] | None = None,
) -> Answers:
    """Find a student's answers in a notebook, a folder or a zip file. Nothing is run.

    Of several cells with one name those that were changed count, in their order: a cell that was
    split goes on as one, and of two versions the later one is defined last, as when the notebook
    is run from top to bottom. Of several notebooks of one exercise the one with the released name
    comes first, then the one with more answers; the others fill in what it has not.

    Args:
        path: what the student handed in.
        released: the cells of each exercise's released notebook, by the exercise.
        names: by an answer cell's name, the function or variable that it must define.
        only: in a class's folder, the student's files, as files.notebooks takes them.

    Returns:
        Answers; what can't be read is a problem in it, not an error.
    """
    handed, problems, unread = _handed(path, only)
    steps, others = {}, {}
    texts: dict[str, str] = {}
    ids = {}
    for exercise, cells in released.items():
        notebooks = _of_exercise(exercise, cells, handed, released)
        if notebooks:
            unread.discard(exercise)
        found = {
            str(cell.grade_id): _pieces(cell, notebooks, cells, names)
            for cell in cells
            if cell.solution
        }
        steps[exercise] = tuple(_steps(cells, found))
        others[exercise] = tuple(_others(notebooks, cells))
        texts |= {
            str(cell.grade_id): "\n\n".join(found[str(cell.grade_id)] or ())
            for cell in cells
            if cell.solution and cell.kind != "code" and found[str(cell.grade_id)]
        }
        if typed := _typed(found.get(STUDENT)):
            ids[exercise] = typed
    return Answers(steps, others, texts, tuple(problems), ids, frozenset(unread & {*released}))


def _handed(
    path: Path, only: Mapping[str, str] | None
) -> tuple[list[_Notebook], list[str], set[str]]:
    """Return the notebooks, what could not be read, and the names of files that could not."""
    handed, problems, unread = [], [], set()
    room, left = MOST_TEXT, MOST_CELLS
    for file in files.notebooks(path, only):
        try:
            if file.problem:
                raise Unreadable(file.problem)
            found = read(file.raw)
            cells = [cell for cell in found if len(cell.source) <= MOST_CHARACTERS]
            size = sum(len(cell.source) for cell in cells)
            if size > room or len(cells) > left:
                raise Unreadable(f"with it there are {TOO_MUCH}; it was left out")
        except Unreadable as problem:
            problems.append(f"{file.name}: {problem}")
            unread.add(_stem(file.name))
            continue
        room, left = room - size, left - len(cells)
        handed.append(_Notebook(file.name, cells))
        if len(cells) < len(found):
            problems.append(f"{file.name}: a cell was left out, {TOO_LONG}")
    if not handed and not problems:
        problems.append(f"{path.name}: there is no notebook in it")
    return handed, problems, unread


def _stem(name: str) -> str:
    """Return a file's name alone: without its folder or zip file, and without its end."""
    return PurePath(name.rpartition(": ")[2]).stem


def _of_exercise(
    exercise: str,
    cells: Sequence[Cell],
    handed: Sequence[_Notebook],
    released: Mapping[str, Sequence[Cell]],
) -> list[_Notebook]:
    """Return the notebooks that belong to an exercise, the best one first.

    They are known by names and texts of cells that no other exercise has.
    """
    telling = _once(map(_names, released.values())) - {STUDENT}
    ids, texts = _names(cells) & telling, _texts(cells)
    own_texts = texts & _once(map(_texts, released.values()))
    mine = []
    for notebook in handed:
        named = {cell.grade_id for cell in notebook.cells} & telling
        same_name = _stem(notebook.name) == exercise
        alike = any(cell.source.strip() in own_texts for cell in notebook.cells)
        if named & ids or (not named and (same_name or alike)):
            changed = sum(
                cell.grade_id in ids and cell.source.strip() not in texts for cell in notebook.cells
            )
            mine.append((not same_name, -changed, notebook.name, notebook))
    return [notebook for *_, notebook in sorted(mine, key=lambda entry: entry[:3])]


def _once(sets: Iterable[set[str]]) -> set[str]:
    """Return what is in one of the sets alone."""
    counts = Counter(one for some in sets for one in some)
    return {one for one, count in counts.items() if count == 1}


def _names(cells: Sequence[Cell]) -> set[str]:
    return {cell.grade_id for cell in cells if cell.grade_id}


def _texts(cells: Sequence[Cell]) -> set[str]:
    return {cell.source.strip() for cell in cells if cell.solution or cell.kind == "markdown"}


def _pieces(
    cell: Cell,
    notebooks: Sequence[_Notebook],
    cells: Sequence[Cell],
    names: Mapping[str, str],
) -> list[str] | None:
    """Return what a student wrote into an answer cell, [] if nothing, None if it is not there."""
    found: list[str] | None = None
    for notebook in notebooks:
        same = [c.source for c in notebook.cells if c.grade_id == cell.grade_id]
        if not same and cell.cell_id:
            same = [
                c.source for c in notebook.cells if c.grade_id is None and c.cell_id == cell.cell_id
            ]
        changed = [s for s in same if s.strip() and s.strip() != cell.source.strip()]
        if same and not found:
            found = changed
    name = names.get(str(cell.grade_id))
    if name and not any(name in defined(piece) for piece in found or ()):
        elsewhere = _defining(name, notebooks, cells)
        if elsewhere is not None:
            return [*(found or ()), elsewhere]
    return found


def _defining(name: str, notebooks: Sequence[_Notebook], cells: Sequence[Cell]) -> str | None:
    """Return the student's last cell that defines a name, rather one that is no other answer."""
    known = {cell.source.strip() for cell in cells}
    ids = {cell.grade_id for cell in cells} - {None}
    for notebook in notebooks:
        defining = [
            cell for cell in notebook.defining.get(name, ()) if cell.source.strip() not in known
        ]
        if defining:
            return max(defining, key=lambda cell: cell.grade_id not in ids).source
    return None


def _steps(cells: Sequence[Cell], found: Mapping[str, list[str] | None]) -> list[Step]:
    steps = []
    for k, cell in enumerate(cells):
        if cell.kind != "code":
            continue
        if not cell.solution and not cell.graded:
            steps.append(Step(cell.grade_id or f"cell {k + 1}", False, (cell.source,)))
        elif cell.solution:
            pieces = found[str(cell.grade_id)]
            if pieces is not None:
                own = bool(pieces)
                steps.append(Step(str(cell.grade_id), own, tuple(pieces) or (cell.source,)))
    return steps


def _others(notebooks: Sequence[_Notebook], cells: Sequence[Cell]) -> list[str]:
    known = {cell.source.strip() for cell in cells}
    ids = {cell.grade_id for cell in cells} - {None}
    return [
        cell.source
        for notebook in notebooks
        for cell in notebook.cells
        if cell.kind == "code" and cell.grade_id not in ids and cell.source.strip() not in known
    ]


def _typed(pieces: list[str] | None) -> str | None:
    found = [TYPED.search(piece) for piece in pieces or ()]
    typed = [match[2].strip() for match in found if match]
    return next((own for own in typed if own and own != PLACEHOLDER), None)

"""Every automatic part: its reference, its misconceptions, its master solution, and the zoo."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path
from typing import Any

import jupytext
import numpy as np
import pytest

from companion.check import check
from companion.exercises import EXERCISES, PARTS
from companion.exercises.judge import Verdict
from companion.exercises.part import MARGIN, TOLERANCE, Case, Part, arguments, close, computed
from tests.zoo import RIGHT, WRONG, Animal

MASTERS = Path(__file__).resolve().parent.parent / "book" / "exercises"
STUDENTS = [f"student-{i}" for i in range(200)]
# With the numbers of "bench", a wrong run of further-3-d divides zero by zero.
FEW = [*STUDENTS[:3], "bench"]

each_part = pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_an_entry_that_is_no_number_is_compared_by_itself(odd):
    expected = np.array([1.0, odd])
    assert close(np.array([1.0, odd]), expected)
    assert not close(np.array([2.0, odd]), expected)
    assert not close(np.array([1.0, 1.0]), expected)


def cells(exercise: str) -> list[Any]:
    """The code cells of a master, solutions included."""
    notebook = jupytext.read(MASTERS / f"{exercise}.md", fmt="md:myst")
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def grade_id(cell: Any) -> str:
    return str(cell.metadata.get("nbgrader", {}).get("grade_id", ""))


def checked(animal: Animal, student: str) -> Verdict:
    """What the self-check says of an animal; numbers are computed from the student's own case."""
    part = PARTS[animal.part]
    if part.kind == "function":
        return check(part.id, animal.answer, student)
    (case,) = part.draw(student)
    return check(part.id, animal.answer(**arguments(case)), student)


def of_part(animals: list[Animal], part: Part) -> list[Animal]:
    return [animal for animal in animals if animal.part == part.id]


def alike(part: Part, cases: list[Case]) -> list[tuple[str, str]]:
    """The pairs of right and wrong that no case tells apart by a margin."""
    rules = [("right", part.reference)] + [(m.name, m.wrong) for m in part.misconceptions]
    values = [(name, [computed(rule, case) for case in cases]) for name, rule in rules]
    return [
        (name, other)
        for (name, one), (other, two) in combinations(values, 2)
        if all(close(b, a, MARGIN * TOLERANCE) for a, b in zip(one, two, strict=True))
    ]


@each_part
def test_every_students_cases_tell_right_and_wrong_apart(part):
    # Cases of a function are drawn until they are sharp; numbers are what they are.
    for student in STUDENTS if part.kind == "numbers" else STUDENTS[:20]:
        assert not alike(part, part.draw(student)), student


@each_part
def test_hidden_cases_are_others_and_as_sharp(part):
    for student in FEW:
        if part.kind == "function":
            assert part.draw(student, "secret") != part.draw(student)
            assert part.draw(student, "secret") != part.draw(student, "another")
            assert not alike(part, part.draw(student, "secret"))


@each_part
def test_numbers_differ_from_student_to_student_and_not_from_day_to_day(part):
    drawn = [part.draw(student) for student in FEW]
    assert all(one != two for one, two in combinations(drawn, 2))
    assert [part.draw(student) for student in FEW] == drawn


@each_part
def test_each_part_has_five_misconceptions_with_names_of_their_own(part):
    names = [m.name for m in part.misconceptions]
    assert len(names) >= 5
    assert len(set(names)) == len(names)
    assert all(m.message.endswith((".", "?")) for m in part.misconceptions)


@each_part
def test_right_answers_in_other_styles_pass(part):
    for student, animal in product(FEW, of_part(RIGHT, part)):
        verdict = checked(animal, student)
        assert verdict.status == "right", (animal.name, verdict)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # wrong answers may divide by zero
@each_part
def test_wrong_answers_are_caught_and_named(part):
    for student, animal in product(FEW, of_part(WRONG, part)):
        verdict = checked(animal, student)
        assert (verdict.status, verdict.misconception) == ("wrong", animal.name), verdict


@each_part
def test_the_zoo_holds_every_misconception_and_other_styles(part):
    assert {a.name for a in of_part(WRONG, part)} == {m.name for m in part.misconceptions}
    assert len(of_part(RIGHT, part)) >= 2


@pytest.mark.parametrize("exercise", EXERCISES)
def test_master_solutions_are_right_for_every_student(exercise):
    source = {grade_id(cell) or f"given {i}": cell.source for i, cell in enumerate(cells(exercise))}
    code = {name: compile(text, name, "exec") for name, text in source.items()}
    parts = [part for part in PARTS.values() if part.id.rpartition("-")[0] == exercise]
    for student in STUDENTS[:50]:
        names: dict[str, Any] = {"print": lambda *_: None}
        for name, block in code.items():
            exec(block, names)
            if name == "student":
                names["student"] = student
        for part in parts:
            verdict = check(part.id, names[part.name], student)
            assert verdict.status == "right", verdict


@pytest.mark.parametrize("exercise", EXERCISES)
def test_masters_ask_for_each_part_and_check_it_for_its_points(exercise):
    found = {grade_id(cell): cell for cell in cells(exercise)}
    for part in PARTS.values():
        if part.id.rpartition("-")[0] != exercise:
            continue
        answer, self_check = found[part.id], found[f"{part.id}-check"]
        assert answer.metadata.nbgrader.solution
        assert not answer.metadata.nbgrader.grade
        assert "### BEGIN SOLUTION\n" in answer.source
        assert self_check.metadata.nbgrader.grade
        assert self_check.metadata.nbgrader.locked
        assert self_check.metadata.nbgrader.points == part.points
        assert self_check.source == f'check("{part.id}", {part.name}, student)'
    grade_ids = [name for name in map(grade_id, cells(exercise)) if name]
    assert len(set(grade_ids)) == len(grade_ids)


@pytest.mark.parametrize("exercise", EXERCISES)
def test_masters_have_a_rubric_and_a_model_answer_for_the_written_part(exercise):
    notebook = jupytext.read(MASTERS / f"{exercise}.md", fmt="md:myst")
    (at,) = [i for i, c in enumerate(notebook.cells) if grade_id(c) == f"{exercise}-written"]
    rubric, answer = notebook.cells[at - 1], notebook.cells[at]
    points = sum(int(n) for n in re.findall(r"^- \*(\d+):", rubric.source, re.M))
    assert answer.cell_type == "markdown"
    assert answer.metadata.nbgrader.points == points
    assert f"*Rubric, {points} points:*" in rubric.source
    assert re.search(
        "^=== BEGIN SOLUTION ===$.{300,}^=== END SOLUTION ===$", answer.source, re.M | re.S
    )
    automatic = sum(p.points for p in PARTS.values() if p.id.rpartition("-")[0] == exercise)
    stated = f"{automatic} points by the checks, {points} for the written part."
    assert stated in " ".join(notebook.cells[0].source.split())


def test_own_numbers_come_without_the_answers_and_the_answers_without_torch():
    code = "import sys, companion.exercises.own, companion.exercises.plain; print(*sys.modules)"
    code += "; from companion.exercises import PARTS; print(*sys.modules)"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    before, after = (line.split() for line in printed.stdout.splitlines())
    assert not [name for name in before if "exercises.exercise" in name]
    assert "torch" not in after


@each_part
def test_references_are_finite(part):
    for student in STUDENTS[:50]:
        for case in part.draw(student):
            assert np.isfinite(computed(part.reference, case)).all()

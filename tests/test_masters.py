"""What students get: made from the masters, without a line of a solution, and worth no point."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import pytest
from jupytext.config import find_jupytext_configuration_file, load_jupytext_configuration_file

from companion.exercises import EXERCISES, PARTS
from companion.grading import masters

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks" / "exercises"


@pytest.fixture(scope="module")
def versions() -> dict[str, Any]:
    """The student versions, as made from the masters now."""
    return masters.student_versions()


def solution_lines(exercise: str) -> set[str]:
    """The lines between the markers in a master's text, without those that stand outside too."""
    text = (ROOT / "book" / "exercises" / f"{exercise}.md").read_text(encoding="utf-8")
    parts = re.split(r"^.*(?:BEGIN|END) SOLUTION.*\n", text, flags=re.MULTILINE)
    inside, outside = (
        {line.strip() for part in some for line in part.splitlines()}
        for some in (parts[1::2], parts[::2])
    )
    return inside - outside


def test_the_notebooks_are_what_the_masters_give(versions):
    stored = {path.stem: path.read_text(encoding="utf-8") for path in NOTEBOOKS.glob("*.ipynb")}
    assert stored == {name: masters.written(version) for name, version in versions.items()}


@pytest.mark.parametrize("exercise", EXERCISES)
def test_no_line_of_a_solution_is_in_a_student_version(exercise):
    text = (NOTEBOOKS / f"{exercise}.ipynb").read_text(encoding="utf-8")
    cells = json.loads(text)["cells"]
    lines = {line.strip() for cell in cells for line in "".join(cell["source"]).splitlines()}
    hidden = solution_lines(exercise)
    assert len(hidden) >= 10
    assert lines & hidden == set()
    assert "SOLUTION" not in text
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_student_version_is_a_valid_notebook_with_every_part(exercise, versions):
    notebook = versions[exercise]
    nbformat.validate(notebook)
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    parts = [part.id for part in PARTS.values() if part.id.rpartition("-")[0] == exercise]
    assert {"student", f"{exercise}-written", *parts, *(f"{p}-check" for p in parts)} <= set(ids)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert all(source and compile(source, exercise, "exec") for source in code)


def test_masters_get_all_points_and_student_versions_none():
    assert masters.check_marks() == []


def test_a_solution_given_away_is_named(versions):
    master = masters.masters()["20-1"]
    assert masters.leaks(master, versions["20-1"]) == []
    (answer,) = (cell for cell in master.cells if cell.id == "20-1-a")
    line = answer.source.splitlines()[-2]

    version = masters.student_version(master)
    version.cells[-1].source += "\n" + line
    assert masters.leaks(master, version) == [f"a line of a solution: {line.strip()}"]
    assert "a marker of a solution" in masters.leaks(master, master)
    version = masters.student_version(master)
    version.cells[1].outputs = [nbformat.v4.new_output("stream", text="left over")]
    assert masters.leaks(master, version) == ["an output"]


@pytest.mark.parametrize(
    "text",
    [
        "### BEGIN SOLUTION\nx = 1",
        "x = 1\n### END SOLUTION",
        "### BEGIN SOLUTION\n### BEGIN SOLUTION\nx = 1\n### END SOLUTION",
    ],
)
def test_markers_that_do_not_match_are_named(text):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text)])
    with pytest.raises(masters.Unfit, match=r"marker|end"):
        masters.leaks(notebook, masters.student_version(notebook))


def test_stubs_stand_where_solutions_were():
    text = "def f():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION\n\n\nx = ...\n"
    text += "### BEGIN SOLUTION\nx = f()\n### END SOLUTION"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text)])
    (cell,) = masters.student_version(notebook).cells
    stub = "    # Your code here.\n    raise NotImplementedError"
    assert cell.source == f"def f():\n{stub}\n\n\nx = ..."


def test_release_writes_a_folder_or_a_zip_file_with_the_same_notebooks(tmp_path):
    names = masters.release(tmp_path / "new" / "folder")
    assert names == [f"{exercise}.ipynb" for exercise in EXERCISES]
    masters.release(tmp_path / "all.zip")
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        zipped = {name: archive.read(name) for name in archive.namelist()}
    assert zipped == {name: (tmp_path / "new" / "folder" / name).read_bytes() for name in names}
    here = [(NOTEBOOKS / name).read_text(encoding="utf-8").splitlines() for name in names]
    for before, name in zip(here, names, strict=True):
        after = zipped[name].decode().splitlines()
        changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
        assert len(changed) == 1, name  # the line that says which section is needed
        assert "](../0" in changed[0][0], name
        assert "](" not in changed[0][1], name
    assert b"You need section 02 (performance difference). 9 points" in zipped["20-1.ipynb"]


def test_nothing_is_released_while_a_master_is_wrong(tmp_path, monkeypatch):
    spoilt = shutil.copytree(masters.BOOK, tmp_path / "masters") / "20-1.md"
    text = spoilt.read_text(encoding="utf-8")
    spoilt.write_text(text.replace("gamma * P_pi.T", "gamma * P_pi"), encoding="utf-8")
    monkeypatch.setattr(masters, "BOOK", spoilt.parent)
    with pytest.raises(masters.Unfit, match="20-1-a: the master's answer is wrong, 0 of 2 points"):
        masters.release(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_jupyterlab_writes_no_text_beside_them():
    file = find_jupytext_configuration_file(str(NOTEBOOKS))
    assert Path(file) == NOTEBOOKS / "jupytext.toml"
    assert load_jupytext_configuration_file(file).default_formats("20-1.ipynb") == "ipynb"
    assert not any("jupytext" in jupytext.read(path).metadata for path in NOTEBOOKS.glob("*.ipynb"))

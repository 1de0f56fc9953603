"""How sections, claims and docstrings become pages."""

from __future__ import annotations

import nbformat
import pytest
from docstrings import restructured
from ledger import STATEMENTS, Claim, claims, markdown
from live_frames import shown

from tests.test_claims import STATEMENTS as BY_SECTION


def notebook(*sources: str, text: str = "") -> nbformat.NotebookNode:
    made = nbformat.v4.new_notebook()
    for i, source in enumerate(sources):
        cell = nbformat.v4.new_code_cell(source, id=f"cell-{i:03}")
        cell.outputs = [nbformat.v4.new_output("stream", text=text)]
        made.cells.append(cell)
    return made


def test_figures_are_found_by_whatever_name_a_notebook_gives_them() -> None:
    found = shown(
        notebook(
            "from companion.figures import clip\nfrom companion.figures.lemma import LEMMA as L",
            "x = 1\nlive(clip.CLIP)",
            "live(L)",
        )
    )
    assert found == [("cell-001", "clip.CLIP"), ("cell-002", "lemma.LEMMA")]


def test_claims_keep_their_cell_and_other_lines_are_left() -> None:
    line = "PDL-1 | largest |residual|, 9 pairs | 2 [1, 3] | <= 1e-10 | holds"
    found = list(claims(notebook("claim()", text=f"table\n{line}\n1 | 2\n")))
    expected = ("PDL-1", "largest |residual|, 9 pairs", "2 [1, 3]", "<= 1e-10", "holds")
    assert found == [Claim(*expected, "cell-000")]


def test_the_ledger_lists_the_statements_of_the_chapter() -> None:
    assert set(STATEMENTS) == {name for names in BY_SECTION.values() for name in names}


def test_a_statement_that_nothing_measures_stops_the_build() -> None:
    with pytest.raises(SystemExit, match="CPI-1"):
        markdown({"02": notebook("claim()", text="PDL-1 | a | 1 | == 1 | holds")}, {"02": "Two"})


@pytest.mark.parametrize(
    ("docstring", "page"),
    [
        ("Not *more* than |x|, `y_z` and _q.", r"Not \*more\* than \|x\|, `y_z` and \_q."),
        ("J >= |x|   (section 3)", ".. code-block:: none\n\n   J >= |x|   (section 3)"),
        ("a = b\n(exercise 20.1)", ".. code-block:: none\n\n   a = b\n   (exercise 20.1)"),
        (">>> f(*x)\n'a|b'", ">>> f(*x)\n'a|b'"),
        ("Reference: A\n    and B_.", "Reference: A\nand B\\_."),
    ],
)
def test_docstrings_are_read_literally_but_for_their_sections(docstring: str, page: str) -> None:
    assert "\n".join(restructured(docstring.splitlines())).strip() == page

"""The sections belong together and are reproducible, and the checker and nbval notice when not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
import outputs
import pytest
import sections
from sections import Section

ROOT = Path(__file__).resolve().parent.parent
Change = Callable[[Any], None]  # of a notebook, in place
Spoil = Callable[[Section], None]

TEXT = """\
# A section

```{code-cell} ipython3
:tags: [hide-input]

print("one")
```

A claim.

+++

Two paragraphs, two cells.

```{code-cell} ipython3
from base64 import b64decode
import ipywidgets

PIXEL = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
)

class Figure:
    def _repr_mimebundle_(self, **_):
        live = ipywidgets.FloatSlider()._repr_mimebundle_()
        return {**live, "text/plain": "a slider", "image/png": PIXEL}

Figure()
```

```{code-cell} ipython3
print("three")
```
"""


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Section:
    """A small section, written in a hurry and executed."""
    root = tmp_path_factory.mktemp("chapter with a space")
    for folder in ("book", "notebooks"):
        (root / folder).mkdir()
    (root / "book" / "01-small.md").write_text(TEXT)
    (section,) = sections.find(root)
    assert sections.execute(section) == ""
    return section


@pytest.fixture
def section(executed: Section, tmp_path: Path) -> Section:
    """A copy of it to spoil."""
    text, notebook = tmp_path / "01-small.md", tmp_path / "01-small.ipynb"
    text.write_bytes(executed.text.read_bytes())
    notebook.write_bytes(executed.notebook.read_bytes())
    return Section(executed.name, text, notebook)


def read(section: Section) -> Any:
    return nbformat.read(section.notebook, as_version=4)


def test_the_chapter_is_in_step_executed_and_reproducible() -> None:
    chapter = sections.find(ROOT)
    assert chapter, "no section yet: write book/NN-name.md, then run make execute"
    problems = [problem for section in chapter for problem in sections.check(section)]
    assert not problems, "\n".join(["", *problems])


def test_execution_writes_text_and_notebook_alike_and_stable(executed: Section) -> None:
    first = executed.text.read_bytes(), executed.notebook.read_bytes()
    assert first[0].startswith(b"---\njupytext:\n")
    assert b"jupytext_version" not in first[0]
    assert first[0].endswith(TEXT.encode())
    assert [*sections.check(executed)] == []
    assert sections.execute(executed) == ""
    assert (executed.text.read_bytes(), executed.notebook.read_bytes()) == first


def test_execution_settles_empty_lines_at_the_end_of_a_cell_at_once(section: Section) -> None:
    section.text.write_text(TEXT.replace('print("three")', 'print("three")\n\n\n'))
    assert sections.execute(section) == ""
    assert [*sections.check(section)] == []
    assert section.text.read_text().endswith('print("three")\n```\n')


def test_what_is_stored_needs_no_kernel_and_names_no_machine(executed: Section) -> None:
    notebook = read(executed)
    assert [cell.id for cell in notebook.cells] == [f"01-small-{n:03}" for n in range(6)]
    assert notebook.cells[1].metadata == {"tags": ["hide-input"]}
    assert set(notebook.cells[4].outputs[0].data) == {"text/plain", "image/png"}
    assert set(notebook.metadata) == {"companion", "kernelspec", "language_info"}
    assert "version" not in notebook.metadata.language_info


def test_execution_stops_at_the_first_error_and_keeps_the_old_notebook(section: Section) -> None:
    before = section.notebook.read_bytes()
    section.text.write_text(TEXT.replace('print("one")', "1 / 0"))
    failure = sections.execute(section)
    assert failure.startswith("01-small: stopped at 01-small-001 (1 / 0)")
    assert "ZeroDivisionError" in failure
    assert section.notebook.read_bytes() == before


def spoil_text(section: Section) -> None:
    section.text.write_text(section.text.read_text().replace("A claim.", "A doubt."))


def spoil_header(section: Section) -> None:
    section.text.write_text(section.text.read_text().replace("Python 3", "Python"))


def append_to_text(section: Section) -> None:
    section.text.write_text(section.text.read_text() + "\n+++\n\nMore.\n")


def delete_text(section: Section) -> None:
    section.text.unlink()


def delete_notebook(section: Section) -> None:
    section.notebook.unlink()


def spoil_notebook(change: Change) -> Spoil:
    def spoil(section: Section) -> None:
        notebook = read(section)
        change(notebook)
        nbformat.write(notebook, section.notebook)

    return spoil


def change_code(notebook: Any) -> None:
    notebook.cells[1].source = 'print("two")'


def change_order(notebook: Any) -> None:
    notebook.cells[5].execution_count = 7


def empty_cell(notebook: Any) -> None:
    notebook.cells[5].source = " "


def store_widgets(notebook: Any) -> None:
    notebook.metadata["widgets"] = {outputs.WIDGET: {}}


def store_a_view(notebook: Any) -> None:
    notebook.cells[4].outputs[0].data[outputs.WIDGET] = {"model_id": "4f"}


def store_an_error(notebook: Any) -> None:
    notebook.cells[1].outputs[:] = [
        nbformat.v4.new_output("error", ename="E", evalue="e", traceback=[])
    ]


def store_stderr(notebook: Any) -> None:
    notebook.cells[1].outputs[0].name = "stderr"


def exempt_by_tag(notebook: Any) -> None:
    notebook.cells[1].metadata.tags = ["nbval-ignore-output"]


def exempt_by_comment(notebook: Any) -> None:
    notebook.cells[1].source = "# NBVAL_SKIP"


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (spoil_text, "01-small-002 (A doubt.): differs between text and notebook: run make exec"),
        (spoil_header, "header or layout is not what jupytext writes: run make execute"),
        (append_to_text, "6 cells, but the text has 7: run make execute"),
        (delete_text, "book/01-small.md: missing beside its notebook"),
        (delete_notebook, "notebooks/01-small.ipynb: missing beside its text: run make execute"),
        (spoil_notebook(change_code), '001 (print("two")): the output is older than the code'),
        (spoil_notebook(change_code), '005 (print("three")): the output is older than the code'),
        (spoil_notebook(change_order), '01-small-005 (print("three")): executed as [7], not [3]'),
        (spoil_notebook(empty_cell), "01-small-005 ( ): an empty code cell: delete it"),
        (spoil_notebook(store_widgets), "widget state is stored: run make execute"),
        (spoil_notebook(store_a_view), "a widget that only its own kernel can show"),
        (spoil_notebook(store_an_error), '01-small-001 (print("one")): an error: mend the cell'),
        (spoil_notebook(store_stderr), "something on stderr"),
        (spoil_notebook(exempt_by_tag), "nbval- takes the cell out of the regression"),
        (spoil_notebook(exempt_by_comment), "# NBVAL_ takes the cell out of the regression"),
    ],
)
def test_each_way_to_spoil_a_section_is_named(section: Section, spoil: Spoil, problem: str) -> None:
    spoil(section)
    problems = [*sections.check(section)]
    assert any(problem in line for line in problems), problems
    assert all(line.startswith(("notebooks/01-small.ipynb: ", "book/01")) for line in problems)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<function step at 0x7f2c1a>", "a memory address"),
        ("saved to /home/ada/chapter.png", "an absolute path"),
        ("saved to '/tmp/a'", "an absolute path"),
        ("C:\\chapter", "an absolute path"),
        ("~/chapter", "an absolute path"),
        ("12.3 ms per move", "a timing"),
        ("7 \u00b5s", "a timing"),
        ("took 3 s", "a timing"),
        ("trained (2.5s)", "a timing"),
        ("3 seconds", "a timing"),
        ("0:01:07", "a timing"),
        ("Wall time: 3", "a timing"),
        ("41.0 it/s", "a rate"),
        ("1.2e+03 steps/s", "a rate"),
        ("RuntimeWarning: overflow", "a warning"),
        ("warning: overflow", "a warning"),
        (" 50%|##   | 5/10", "a progress bar"),
        ("\u2588\u2588", "a progress bar"),
        ("[=====>   ]", "a progress bar"),
        ("\x1b[31mred", "an ANSI code"),
        ("1\r2", "a carriage return"),
        ("-" * 101, "a line of 101 columns"),
    ],
)
@pytest.mark.parametrize("kind", ["stream", "result"])
def test_each_kind_of_unstable_text_is_named(
    executed: Section, text: str, problem: str, kind: str
) -> None:
    cell = deepcopy(read(executed).cells[1])
    if kind == "stream":
        cell.outputs[0].text = text
    else:
        cell.outputs[:] = [nbformat.v4.new_output("display_data", {"text/plain": text})]
    (line,) = outputs.cell_problems(cell)
    assert line.startswith(problem)


@pytest.mark.parametrize(
    "text",
    [
        "KL 0.033 nats, 41.2 % outside, ratio 2.04 after 10 epochs",
        "max_s KL(pi(.|s)||pi'(.|s)) <= 4 e gamma/(1-gamma)^2",
        "J(pi') - J(pi) in 3 states, 20 s and 4 a",
        "1.23e-05 / 4 and/or 5 /6",
        "seed 0x1F, 0:10, 1:2",
        "epoch  |  KL  |  outside\n-------+------+--------",
        "in ms or s; a warning in prose",
        '<img alt="KL" src="data:image/png;base64,iVBORw0KGgo+/AAA/BBB/CCC==">',
        "https://example.org/a/b",
        "-" * 100,
    ],
)
def test_ordinary_output_is_allowed(executed: Section, text: str) -> None:
    cell = deepcopy(read(executed).cells[1])
    cell.outputs[0].text = text
    assert [*outputs.cell_problems(cell)] == []


def print_more(notebook: Any) -> None:
    notebook.cells[1].source = 'print("one"); display("more")'


def show_no_picture(notebook: Any) -> None:
    notebook.cells[4].source = notebook.cells[4].source.replace(', "image/png": PIXEL', "")


def show_two_pictures(notebook: Any) -> None:
    notebook.cells[4].source = 'display({"image/png": "iVBORw0KGgo="}, raw=True)\n' + (
        notebook.cells[4].source
    )


def misprint(notebook: Any) -> None:
    notebook.cells[5].outputs[0].text = "threE\n"


SPOILED: dict[str, Change] = {
    "as_it_is": lambda notebook: None,
    "a_character": misprint,
    "an_output_more": print_more,
    "no_picture": show_no_picture,
    "two_pictures": show_two_pictures,
}


@pytest.fixture(scope="module")
def nbval(executed: Section, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """How each cell of the section came out, as it is and spoiled in each way, as make test runs.

    Starting pytest takes longer than running these cells, so that one call runs all of them.
    """
    folder = tmp_path_factory.mktemp("nbval")
    for name, spoil in SPOILED.items():
        notebook = read(executed)
        spoil(notebook)
        nbformat.write(notebook, folder / f"{name}.ipynb")
    command = [sys.executable, "-m", "pytest", "-v", "-p", "conftest", "-p", "no:cacheprovider"]
    command += ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder), str(folder)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=540,
    )
    found = re.findall(r"(\w+)::ipynb::Cell \d+ (PASSED|FAILED)", done.stdout)
    outcomes = {name: [how for of, how in found if of == name] for name in SPOILED}
    assert all(len(cells) == 3 for cells in outcomes.values()), done.stdout
    return outcomes


def test_nbval_passes_a_widget_whose_picture_is_stored(nbval: dict[str, list[str]]) -> None:
    assert nbval["as_it_is"] == ["PASSED"] * 3


@pytest.mark.parametrize("name", list(SPOILED)[1:])
def test_nbval_notices_a_character_an_output_and_a_picture(
    nbval: dict[str, list[str]], name: str
) -> None:
    assert sorted(nbval[name]) == ["FAILED", "PASSED", "PASSED"]

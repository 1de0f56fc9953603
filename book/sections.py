"""Run the chapter's sections, and check that text, notebook and outputs belong together.

python book/sections.py execute [NAME ...]     book/NN-name.md -> notebooks/NN-name.ipynb
python book/sections.py check [NAME ...]       one line per problem
"""

import argparse
import hashlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import jupytext  # type: ignore[import-untyped]
import nbformat
from jupytext.config import load_jupytext_configuration_file  # type: ignore[import-untyped]
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from outputs import RERUN, WIDGET, cell_problems

ROOT = Path(__file__).resolve().parent.parent
FORMAT = "md:myst"
METADATA = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}
CELL_SECONDS = 600
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Section(NamedTuple):
    """One section of the chapter: its text and the notebook of the same name."""

    name: str
    text: Path
    notebook: Path


def find(root: Path, names: Sequence[str] = ()) -> list[Section]:
    """Sections under root that have a text or a notebook; all, or those named."""
    texts = {path.stem for path in (root / "book").glob("[0-9][0-9]-*.md")}
    present = texts | {path.stem for path in (root / "notebooks").glob("*.ipynb")}
    wanted = {Path(name).stem for name in names} or present
    if unknown := sorted(wanted - present):
        raise SystemExit(f"no section {', '.join(unknown)}; there are {', '.join(sorted(present))}")
    return [
        Section(name, root / "book" / f"{name}.md", root / "notebooks" / f"{name}.ipynb")
        for name in sorted(wanted)
    ]


def read_text(section: Section) -> Any:
    """The section's text as a notebook without outputs, its cells named by position."""
    notebook = jupytext.read(section.text, fmt=FORMAT)
    notebook.metadata = nbformat.from_dict(METADATA)  # type: ignore[no-untyped-call]
    for position, cell in enumerate(notebook.cells):
        cell.id = f"{section.name}-{position:03}"
    return notebook


def written(notebook: Any) -> str:
    """The text that jupytext, set up as in JupyterLab, writes for a notebook."""
    layout = {"extension": ".md", "format_name": "myst"}
    config = load_jupytext_configuration_file(str(ROOT / "jupytext.toml"))
    config.set_default_format_options(layout)
    return str(jupytext.writes(notebook, fmt=layout))


def lay_out(section: Section) -> Any:
    """Write the text as JupyterLab would, and return it as a notebook."""
    notebook = read_text(section)
    # Jupytext takes away one empty line at the end of a cell each time.
    while (text := written(notebook)) != section.text.read_text(encoding="utf-8"):
        section.text.write_text(text, encoding="utf-8")
        notebook = read_text(section)
    return notebook


def code_hashes(notebook: Any) -> dict[str, str]:
    """For each code cell, by id, a hash of the code from the first cell to this one."""
    digest = hashlib.sha256()
    hashes = {}
    for cell in code_cells(notebook):
        digest.update(cell.source.encode() + b"\0")
        hashes[cell.id] = digest.hexdigest()[:16]
    return hashes


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def clean(notebook: Any) -> None:
    """Keep what every machine reproduces: no widget state, no kernel version."""
    notebook.metadata = nbformat.from_dict(METADATA)  # type: ignore[no-untyped-call]
    notebook.metadata["companion"] = {"code": code_hashes(notebook)}
    for cell in code_cells(notebook):
        for output in cell.outputs:
            output.get("data", {}).pop(WIDGET, None)


def execute(section: Section) -> str:
    """Run one section in a fresh kernel and write its notebook; returns what went wrong, or ""."""
    notebook = lay_out(section)
    section.notebook.parent.mkdir(exist_ok=True)
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        coalesce_streams=True,
        record_timing=False,
        extra_arguments=["--IPKernelApp.log_level=40"],
        resources={"metadata": {"path": str(section.notebook.parent)}},
    )
    try:
        # A fresh IPython directory keeps a reader's start-up files out of the outputs.
        with tempfile.TemporaryDirectory() as fresh:
            client.execute(env=os.environ | {"IPYTHONDIR": fresh, "OMP_NUM_THREADS": "1"})
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        cell = code_cells(notebook)[client.code_cells_executed - 1]
        return f"{section.name}: stopped at {label(cell)}\n{COLOUR.sub('', str(error))}"
    clean(notebook)
    nbformat.write(notebook, section.notebook)  # type: ignore[no-untyped-call]
    os.utime(section.text)  # JupyterLab takes the cells from the text, and wants it newer
    return ""


def execute_all(sections: Sequence[Section]) -> int:
    """Run sections two at a time; returns the number that failed."""
    start = time.perf_counter()
    failures = 0
    with ProcessPoolExecutor(max_workers=2) as pool:
        running = {pool.submit(execute, section): section for section in sections}
        try:
            for done in as_completed(running):
                failure = done.result()
                failures += bool(failure)
                print(failure or f"{running[done].name}: executed", flush=True)
        finally:
            pool.shutdown(cancel_futures=True)
    print(f"{len(sections)} sections, {failures} failed, {time.perf_counter() - start:.0f} s")
    return failures


def label(cell: Any) -> str:
    first = next(iter(cell.source.splitlines()), "")
    return f"{cell.id} ({first[:40]})"


def check(section: Section) -> Iterator[str]:
    """One line per problem of a section: file, cell, what it is and what to do."""
    if not section.text.exists():
        yield f"book/{section.name}.md: missing beside its notebook: write it or delete that"
    elif not section.notebook.exists():
        yield f"notebooks/{section.name}.ipynb: missing beside its text: {RERUN}"
    else:
        stored = nbformat.read(section.notebook, as_version=4)  # type: ignore[no-untyped-call]
        problems = [*pair_problems(section, stored), *order_problems(stored)]
        for cell in code_cells(stored):
            problems += [f"{label(cell)}: {problem}" for problem in cell_problems(cell)]
        yield from (f"notebooks/{section.name}.ipynb: {problem}" for problem in problems)


def pair_problems(section: Section, stored: Any) -> Iterator[str]:
    """Text and notebook out of step, compared as jupytext writes them."""
    if section.text.read_text(encoding="utf-8") == written(stored):
        return
    cells = read_text(section).cells
    for cell, other in zip(cells, stored.cells, strict=False):
        if any(cell[key] != other[key] for key in ("cell_type", "source", "metadata")):
            yield f"{label(cell)}: differs between text and notebook: {RERUN}"
            return
    if len(cells) != len(stored.cells):
        yield f"{len(stored.cells)} cells, but the text has {len(cells)}: {RERUN}"
    else:
        yield f"the text's header or layout is not what jupytext writes: {RERUN}"


def order_problems(stored: Any) -> Iterator[str]:
    """Cells not executed from top to bottom, or changed after their output was made."""
    recorded = stored.metadata.get("companion", {}).get("code", {})
    hashes = code_hashes(stored)
    for count, cell in enumerate(code_cells(stored), 1):
        if not cell.source.strip():
            yield f"{label(cell)}: an empty code cell: delete it"
        elif cell.execution_count != count:
            yield f"{label(cell)}: executed as [{cell.execution_count}], not [{count}]: {RERUN}"
        elif recorded.get(cell.id) != hashes[cell.id]:
            yield f"{label(cell)}: the output is older than the code down to here: {RERUN}"
    if "widgets" in stored.metadata:
        yield f"widget state is stored: {RERUN}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("action", choices=["execute", "check"])
    parser.add_argument("name", nargs="*", help="a section, such as 03-cpi-bound; default: all")
    arguments = parser.parse_args()
    sections = find(ROOT, arguments.name)
    if not sections:
        print("book/: no section yet: write book/NN-name.md")
        return 1
    if arguments.action == "execute":
        return min(execute_all(sections), 1)
    problems = [problem for section in sections for problem in check(section)]
    print("\n".join(problems) or f"{len(sections)} sections in step, executed and reproducible")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())

"""Build the site from the executed notebooks: python book/website.py

The texts and notebooks are copied into build/site-source, with what a page without a kernel needs,
and Sphinx makes build/site of them. Nothing is executed but the draw functions of the live figures
and the printed tables.
"""

import base64
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from html import escape
from importlib import metadata
from itertools import groupby
from typing import Any

import ledger
import nbformat
import printed_tables
from live_frames import live_figure, record_all, shown
from live_html import at_start, figure_html
from sections import ROOT, find

from companion import frames

BUILD = ROOT / "build"
SOURCE, STATIC, SITE = BUILD / "site-source", BUILD / "site-static", BUILD / "site"
PAGE_BYTES = 1_500_000  # of a page with its pictures and all frames; scripts and styles are shared
API_PACKAGES = ("companion", "companion.compiled", "companion.figures")
# What an author of exercises or an instructor calls: not the solutions, not the sandbox's inside.
API_PARTS = {
    "companion.exercises": ("part", "judge", "own"),
    "companion.grading": (
        *("masters", "hand_ins", "roster", "grade", "marker", "limits", "desk"),
        *("gradebook", "course", "feedback", "export", "summary", "summary_page"),
    ),
}
SECTION_LIST, EXERCISE_LIST = "notebooks/[0-9]*\n", "notebooks/exercises/*\n"
LIVE_DIRECTIVE = re.compile(r"^```\{live\} (\S+)\n```$", flags=re.MULTILINE)
MATHJAX = "sphinx-mathjax-offline/static/mathjax/tex-svg-full.js"


class Site:
    """What the pages are made of: executed notebooks, and the data of their live figures."""

    def __init__(self) -> None:
        self.notebooks: dict[str, Any] = {
            section.name: nbformat.read(section.notebook, as_version=4)  # type: ignore[no-untyped-call]
            for section in find(ROOT)
            if section.notebook.exists()
        }
        self.shown = {name: shown(notebook) for name, notebook in self.notebooks.items()}
        self.scripts = record_all({s.name for every in self.shown.values() for s in every})
        self.data = {
            name: frames.unpacked(path.read_text(encoding="utf-8"))
            for name, path in self.scripts.items()
        }
        self.pictures: dict[str, bytes] = {}

    def html(self, name: str, ident: str, root: str) -> str:
        """A live figure as HTML."""
        return figure_html(name, live_figure(name), self.data[name], ident=ident, root=root)

    def put_live(self, page: str) -> None:
        """Replace the outputs of a notebook's live cells, keeping their pictures."""
        cells = {cell.id: cell for cell in self.notebooks[page].cells}
        for cell, name in self.shown[page]:
            (output,) = (o for o in cells[cell].outputs if "image/png" in o.get("data", {}))
            alt, numbers = at_start(live_figure(name), self.data[name])
            words = " ".join([alt, *(f"{key} {value}" for key, value in numbers.items())])
            if output.data["text/plain"].split() != words.split():
                raise SystemExit(f"{page}, {cell}: not what {name} draws now: run make execute")
            self.pictures.setdefault(name, base64.b64decode(output.data["image/png"]))
            output.data = {"text/html": self.html(name, cell, "../")}


def stage(site: Site) -> None:
    """Write the sources that Sphinx reads."""
    for folder in (SOURCE, STATIC):
        shutil.rmtree(folder, ignore_errors=True)
    for folder in ("book", "notebooks/exercises", "downloads", "generated", "api"):
        (SOURCE / folder).mkdir(parents=True)
    titles = {name: title(notebook) for name, notebook in site.notebooks.items()}
    (SOURCE / "generated/ledger.md").write_text(ledger.markdown(site.notebooks, titles))
    (SOURCE / "generated/tables.md").write_text(printed_tables.markdown())
    (SOURCE / "generated/api.md").write_text(stage_api())
    shutil.copy(ROOT / "README.md", SOURCE)
    for text in (ROOT / "book").glob("[!0-9]*.md"):
        shutil.copy(text, SOURCE / "book")
    (SOURCE / "book/_static").mkdir()
    for picture in (ROOT / "book/_static").glob("*.png"):
        shutil.copy(picture, SOURCE / "book/_static")
    for name in site.notebooks:
        shutil.copy(ROOT / "notebooks" / f"{name}.ipynb", SOURCE / "downloads")
        stage_notebook(site, name)
    stage_index(titles, stage_exercises(), site)
    stage_static(site)


def stage_notebook(site: Site, name: str) -> None:
    """Write a section with its live figures, a link to its notebook, and targets at its claims."""
    site.put_live(name)
    notebook = site.notebooks[name]
    put_links(notebook, name, "[run it](../book/running.md)", root="..")
    claiming = {claim.cell for claim in ledger.claims(notebook)}
    cells = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                alt = " ".join(output.data["text/plain"].split())
                cell.metadata["mystnb"] = {"image": {"alt": alt, "classes": "dark-light"}}
        if cell.id in claiming:
            cell.outputs = [part for output in cell.outputs for part in claims_apart(output)]
            target = f"({ledger.anchor(cell.id)})="
            cells.append(nbformat.v4.new_markdown_cell(target))  # type: ignore[no-untyped-call]
        cells.append(cell)
    notebook.cells = cells
    nbformat.write(notebook, SOURCE / f"notebooks/{name}.ipynb")  # type: ignore[no-untyped-call]


def claims_apart(output: Any) -> list[Any]:
    """An output in parts: claims, which may wrap, and what must not, such as tables."""
    if output.output_type != "stream":
        return [output]
    parts = []
    for claiming, lines in groupby(output.text.splitlines(), ledger.is_claim):
        if claiming:
            spans = "".join(f"<span>{escape(line)}</span>" for line in lines)
            data = {"text/html": f'<pre class="claims">{spans}</pre>'}
            parts.append(nbformat.v4.new_output("display_data", data))  # type: ignore[no-untyped-call]
        else:
            text = "\n".join(lines)
            parts.append(nbformat.v4.new_output("stream", name="stdout", text=text))  # type: ignore[no-untyped-call]
    return parts


def stage_exercises() -> dict[str, str]:
    """Write the students' versions, with a link to each notebook; returns their titles."""
    titles = {}
    for path in sorted((ROOT / "notebooks/exercises").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        titles[path.stem] = title(notebook)
        put_links(notebook, path.stem, "[how exercises work](../../book/student.md)", root="../..")
        shutil.copy(path, SOURCE / "downloads")
        nbformat.write(notebook, SOURCE / f"notebooks/exercises/{path.name}")  # type: ignore[no-untyped-call]
    return titles


def put_links(notebook: Any, name: str, more: str, *, root: str) -> None:
    """Put a link to the notebook, and another, under its heading."""
    first = notebook.cells[0]
    heading, _, rest = first.source.partition("\n\n")
    link = f"[Download the notebook](path:{root}/downloads/{name}.ipynb)"
    first.source = f"{heading}\n\n{link}, {more}\n\n{rest}"


def stage_index(titles: Mapping[str, str], exercises: Mapping[str, str], site: Site) -> None:
    """Move the start page to the root of the site, with its live figure, sections and exercises."""
    page = SOURCE / "book/index.md"
    text = re.sub(r"\]\((?!\.\./|https?:)", "](book/", page.read_text(encoding="utf-8"))
    sections = [f"{name[:2]} {title} <notebooks/{name}>\n" for name, title in titles.items()]
    pages = [f"{title} <notebooks/exercises/{name}>\n" for name, title in exercises.items()]
    text = text.replace("](../", "](").replace(SECTION_LIST, "".join(sections))
    text = text.replace(EXERCISE_LIST, "".join(pages))

    def figure(found: re.Match[str]) -> str:
        return f"````{{raw}} html\n{site.html(found[1], 'start', '')}````"

    (SOURCE / "index.md").write_text(LIVE_DIRECTIVE.sub(figure, text), encoding="utf-8")
    page.unlink()


def stage_static(site: Site) -> None:
    """Copy pictures, frames and MathJax to where pages find them."""
    (STATIC / "live").mkdir(parents=True)
    for name, picture in site.pictures.items():
        (STATIC / f"live/{name}.png").write_bytes(picture)
        shutil.copy(site.scripts[name], STATIC / f"live/{name}.js")
    (STATIC / "mathjax").mkdir()
    mathjax = metadata.distribution("sphinx-mathjax-offline").locate_file(MATHJAX)
    shutil.copy(str(mathjax), STATIC / "mathjax")


def stage_api() -> str:
    """Write a page for each module; returns the table of them."""
    lines = ["| Module | What it holds |", "|---|---|"]
    for name in api_modules():
        first, *_ = str(pkgutil.resolve_name(name).__doc__).splitlines()
        page = f"# {name}\n\n```{{eval-rst}}\n.. automodule:: {name}\n```\n"
        (SOURCE / f"api/{name}.md").write_text(page, encoding="utf-8")
        lines.append(f"| [{name}](../api/{name}.md) | {first} |")
    return "\n".join(lines)


def api_modules() -> list[str]:
    """The modules that have a page."""
    every = [
        info.name
        for package in API_PACKAGES
        for info in pkgutil.iter_modules(pkgutil.resolve_name(package).__path__, f"{package}.")
        if not info.ispkg
    ]
    return every + [f"{package}.{name}" for package, names in API_PARTS.items() for name in names]


def title(notebook: Any) -> str:
    return str(notebook.cells[0].source).partition("\n")[0].removeprefix("# ")


def sphinx() -> int:
    """Run Sphinx from nothing; a warning is an error."""
    shutil.rmtree(SITE, ignore_errors=True)
    strict = ["-W", "--keep-going", "-E", "-q", "-d", str(BUILD / "doctrees")]
    where = ["-c", str(ROOT / "book"), str(SOURCE), str(SITE)]
    return subprocess.run([sys.executable, "-m", "sphinx", *strict, *where], check=False).returncode


def too_large() -> list[str]:
    """Pages that are too large, with their pictures and the frames of their figures."""
    found = []
    for page in SITE.glob("**/*.html"):
        text = page.read_text(encoding="utf-8")
        pictures = re.findall(r'<img [^>]*src="([^"]+)"', text)
        files = {page, *(page.parent / picture for picture in pictures)}
        files |= {STATIC / f"live/{name}.js" for name in re.findall(r'data-live="([^"]+)"', text)}
        size = sum(path.stat().st_size for path in files)
        if size > PAGE_BYTES:
            found.append(f"{page.relative_to(SITE)}: {size / 1e6:.2f} MB")
    return found


def build() -> None:
    """Build the whole site."""
    start = time.perf_counter()
    stage(Site())
    if code := sphinx():
        raise SystemExit(code)
    if problems := too_large():
        raise SystemExit("\n".join(problems))
    print(f"build/site/index.html, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"  # a process per core needs no more
    build()

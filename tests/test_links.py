"""Links and citations of the sections lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXTS = [*sorted((ROOT / "book").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")

NAME = r"[A-Z][\w'-]+"
CITATION = re.compile(rf"(?:{NAME}, )*{NAME}(?: et al\.| and {NAME})? (?:19|20)\d\d[a-z]?\b")
# What the chapter itself cites, where no section has occasion to.
CHAPTERS_SOURCES = {
    "Abdolmaleki et al. 2018",
    "Achiam 2017",
    "Agarwal et al. 2021",
    "Andrychowicz et al. 2021",
    "Cen et al. 2022",
    "Cobbe et al. 2021",
    "Engstrom et al. 2020",
    "Geist et al. 2019",
    "Huang et al. 2022",
    "Kakade 2001",
    "Kakade and Langford 2002",
    "Lan 2023",
    "Li et al. 2021",
    "Mei et al. 2020",
    "Neu et al. 2017",
    "Ouyang et al. 2022",
    "Schulman et al. 2015",
    "Schulman et al. 2016",
    "Schulman et al. 2017",
    "Shani et al. 2020",
    "Shao et al. 2024",
    "Song et al. 2020",
    "Tomar et al. 2022",
    "Wang et al. 2019",
    "Xiao 2022",
}


def anchors(path: Path) -> set[str]:
    """Return the anchors of a text's headings, as GitHub and Sphinx make them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {heading_anchor(heading) for heading in headings}


def heading_anchor(heading: str) -> str:
    """Return the anchor of one heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_every_link_leads_to_a_file_and_a_heading(text: Path) -> None:
    # A section is read as a notebook too, one folder away, where its links must hold as well.
    section = text.parent.name == "book" and text.name[0].isdigit()
    for target, anchor in LINK.findall(text.read_text(encoding="utf-8")):
        folder = ROOT / "notebooks" if section else text.parent
        path = (folder / target).resolve() if target else text
        assert path.exists(), f"{text.name}: {target}"
        if anchor:
            assert anchor in anchors(path), f"{text.name}: {target}#{anchor}"


def references() -> list[str]:
    """Return the headings of the list of references, such as "Schulman et al. 2017"."""
    text = (ROOT / "book" / "references.md").read_text(encoding="utf-8")
    return re.findall(r"^### (.+)$", text, flags=re.MULTILINE)


def cited_by_the_package() -> set[str]:
    """Return what the docstrings and comments of the package cite."""
    modules = (ROOT / "companion").rglob("*.py")
    return {c for path in modules for c in CITATION.findall(path.read_text(encoding="utf-8"))}


def test_references_are_in_alphabetical_order_and_listed_once() -> None:
    assert references() == sorted(set(references()), key=str.casefold)


def test_every_reference_is_cited() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "book").rglob("*.md")]
    linked = {anchor for text in texts for _, anchor in LINK.findall(text)}
    unlinked = {entry for entry in references() if heading_anchor(entry) not in linked}
    assert unlinked <= cited_by_the_package() | CHAPTERS_SOURCES
    assert set(references()) >= CHAPTERS_SOURCES


def test_what_the_package_cites_is_a_reference() -> None:
    assert cited_by_the_package() <= set(references())

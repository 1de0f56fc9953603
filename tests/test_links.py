"""Links and citations of the sections lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXTS = [*sorted((ROOT / "book").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(path: Path) -> set[str]:
    """Return the anchors of a text's headings, as GitHub and Sphinx make them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


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


def test_every_reference_is_cited_or_listed_once() -> None:
    text = (ROOT / "book" / "references.md").read_text(encoding="utf-8")
    entries = re.findall(r"^### (.+)$", text, flags=re.MULTILINE)
    assert entries == sorted(set(entries), key=str.casefold)

"""Docstrings as reStructuredText: equations kept as written, everything else read literally."""

import re
from collections.abc import Iterator

# An equation ends with the place in the chapter: (section 3), (exercise 20.1), (ex. 20.8).
EQUATION = re.compile(r"\((?:(?:chapter, )?section|exercise|ex\.)s? [^()]*(?:\([^()]*\)[^()]*)*\)$")
SPECIAL = re.compile(r"(`[^`]+`)|([\\*|_])")


def paragraphs(lines: list[str]) -> Iterator[list[str]]:
    """Split lines at blank ones."""
    paragraph: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            yield paragraph
            paragraph = []


def restructured(lines: list[str]) -> list[str]:
    """A docstring's lines as reStructuredText."""
    result = []
    for paragraph in paragraphs(lines):
        if paragraph[0].lstrip().startswith(">>>"):
            result += paragraph
        elif EQUATION.search(paragraph[-1]):
            result += [".. code-block:: none", "", *(f"   {line}" for line in paragraph)]
        elif paragraph[0].startswith("Reference:"):
            result += [_escaped(line.lstrip()) for line in paragraph]
        else:
            result += [_escaped(line) for line in paragraph]
        result.append("")
    return result


def _escaped(line: str) -> str:
    return SPECIAL.sub(lambda found: found[1] or "\\" + found[2], line)

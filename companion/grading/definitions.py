"""The names that a cell defines, as far as its lines tell."""

from __future__ import annotations

import re

# A line's beginning that defines a name. What is possessive (+) goes over no text twice.
DEFINITION = re.compile(
    r"^(?:(?:(?:async[ \t]++)?def|class)[ \t]++(?P<made>\w++)"
    r"|(?P<variable>\w++)[ \t]*+(?::[^=\n]*+)?=(?!=)"
    r"|(?:from[ \t]++[\w.]++[ \t]++)?import[ \t](?P<imported>[^#\n]*+))",
    re.MULTILINE,
)
WORD = re.compile(r"\w+")


def defined(source: str) -> set[str]:
    """Return the names that lines of source define, without parsing what might be no Python.

    The compiler could be brought to crash by what it is given.

    >>> sorted(defined("def f(x):\\n    y = x\\nz: int = 3\\nfrom a import b"))
    ['b', 'f', 'z']
    """
    found: set[str] = set()
    for match in DEFINITION.finditer(source):
        found.update([match["made"] or match["variable"]] if match["imported"] is None else ())
        found.update(WORD.findall(match["imported"] or ""))
    return found

"""Attacks on the marking: what a student could hand in, and the mark that it must get.

Each is the text of an answer cell that should define double(x), which returns 2 * x. Names that a
cell may use: GRADEBOOK, MASTER, OTHER, HOME (paths outside), PORT (where someone listens).
"""

from dataclasses import dataclass

HONEST = "\ndef double(x):\n    return 2 * x\n"


@dataclass(frozen=True)
class Attack:
    """An attack and what must come of it."""

    name: str
    cell: str
    status: str  # or several that are all right, with "|" between
    printed: str = ""  # that the cell must have printed
    message: str = ""  # that the mark's message must hold


def answer(name: str, expression: str, status: str = "refused", message: str = "") -> Attack:
    """Return the attack of handing out the value of an expression in x."""
    imports = "import numpy as np\n"
    return Attack(name, f"{imports}def double(x):\n    return {expression}\n", status, "", message)


def beside(name: str, cell: str, printed: str = "", status: str = "right") -> Attack:
    """Return an attack that goes on beside an honest answer, which must get its mark."""
    return Attack(name, cell + HONEST, status, printed)

"""Every statement of the chapter is measured in an executed notebook, and holds."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
STATEMENTS = {
    "01-step-size": ["STEP-1"],
    "02-performance-difference": [f"PDL-{i}" for i in range(1, 6)],
    "03-cpi-bound": [f"CPI-{i}" for i in range(1, 6)],
    "04-trpo-step": [f"TRPO-{i}" for i in range(1, 6)],
    "05-clipped-objective": [f"CLIP-{i}" for i in range(1, 6)],
    "06-bandit-clip": [f"BANDIT-{i}" for i in range(1, 7)],
    "07-mirror-descent": [*(f"PMD-{i}" for i in range(1, 5)), "MPO-1", "REG-1"],
    "08-ppo": ["PPO-1", "PPO-2", *(f"ABL-{i}" for i in range(1, 6))],
}


def claims(name: str) -> list[str]:
    """Return the lines that the claims of a notebook printed."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    lines = "\n".join(output.get("text", "") for output in outputs).splitlines()
    return [line for line in lines if re.match(r"[A-Z]+-\d+ \| ", line)]


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_of_the_section_is_measured_and_holds(name: str) -> None:
    lines = claims(name)
    assert all(line.endswith("| holds") for line in lines)
    assert set(STATEMENTS[name]) <= {line.split(" |")[0] for line in lines}


@pytest.mark.parametrize(
    ("name", "statement", "entries"),
    [
        ("01-step-size", "STEP-1", "6 of 6"),
        ("04-trpo-step", "TRPO-3", "8 of 8"),
        ("04-trpo-step", "TRPO-5", "9 of 9"),
        ("06-bandit-clip", "BANDIT-1", "60 of 60"),
        ("07-mirror-descent", "PMD-4", "60 of 60"),
        ("08-ppo", "ABL-1", "18 of 18"),
    ],
)
def test_the_printed_tables_are_reproduced_in_full(name: str, statement: str, entries: str) -> None:
    counts = [line.split(" | ")[2] for line in claims(name) if line.startswith(f"{statement} |")]
    assert entries in counts

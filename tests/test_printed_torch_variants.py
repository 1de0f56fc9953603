"""The tables made with torch come out the same on every vector unit and number of threads.

Each vector unit is a process of its own, because torch picks its kernels once. Inside, the tests
that compare every printed string run with one thread and again with two.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

UNITS = ("default", "avx2", "avx512")
PRINTED = (
    "test_bandit.py::test_every_printed_figure",
    "test_printed_trpo.py::test_every_printed_figure",
)
# The child needs no plugin, and its second thread should sleep, not spin, while another test runs.
QUICK = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OMP_WAIT_POLICY": "PASSIVE"}
SCRIPT = """
import sys, pytest, torch
assert torch.backends.cpu.get_cpu_capability().lower() == sys.argv[1]
for threads in (1, 2):
    torch.set_num_threads(threads)
    plain = ["-q", "-o", "addopts=", "-o", "required_plugins=", "-p", "no:cacheprovider"]
    code = pytest.main([*plain, *sys.argv[2:]])
    if code:
        sys.exit(f"printed figures differ on {sys.argv[1]} with {threads} threads")
"""


def runnable() -> tuple[str, ...]:
    """The units up to the processor's own: torch would run a larger one until it crashed."""
    own = torch.backends.cpu.get_cpu_capability().lower()
    units = UNITS[: UNITS.index(own) + 1] if own in UNITS else UNITS[:1]
    if units != UNITS:
        missing = ", ".join(UNITS[len(units) :])
        warnings.warn(f"printed figures not tried on {missing}: torch has {own}", stacklevel=2)
    return units


@pytest.mark.parametrize("unit", runnable())
def test_printed_figures(unit: str) -> None:
    here = Path(__file__).parent
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, unit, *PRINTED],
        cwd=here,
        env=os.environ | {"ATEN_CPU_CAPABILITY": unit} | QUICK,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count(f"{len(PRINTED)} passed") == 2, result.stdout

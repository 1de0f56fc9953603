"""The package installs alone, is light to import, typed and tidy."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NUMPY_ONLY = [
    "advantage",
    "batch",
    "bounds",
    "conjugate_gradient",
    "diagnostics",
    "improvement",
    "interval",
    "mdp",
    "mirror",
    "mirror_example",
    "mpo",
    "objective",
    "penalty",
    "policy",
    "ppo_settings",
    "regularized",
    "sampling",
    "validation",
    "value_loss",
]
HEAVY = {"IPython", "gymnasium", "jax", "matplotlib", "numba", "torch"}
IMPORT_SECONDS = {"companion": 0.05, "companion.mdp": 0.5}  # the latter with NumPy; processor time


def run(*arguments: str, cwd: Path = ROOT, **environment: str) -> str:
    """What python prints, given these arguments; a failure shows all of it."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=540,
    )
    assert done.returncode == 0, f"python {' '.join(arguments)}:\n{done.stdout}"
    return done.stdout


def test_the_tabular_part_needs_neither_torch_nor_matplotlib() -> None:
    code = f"""
import importlib, sys
for module in {NUMPY_ONLY}:
    importlib.import_module("companion." + module)
    print(*([module, "imports", *heavy] if (heavy := sys.modules.keys() & {HEAVY}) else []))
"""
    assert run("-c", code).split() == []


@pytest.mark.parametrize("module", IMPORT_SECONDS)
def test_the_package_is_imported_in_a_moment(module: str) -> None:
    code = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
    assert min(float(run("-c", code)) for _ in range(5)) < IMPORT_SECONDS[module]


@pytest.mark.parametrize(
    "arguments",
    [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["mypy", "--strict"],
        ["mypy", "--strict", "book/sections.py"],
    ],
    ids=" ".join,
)
def test_style_and_types(arguments: list[str]) -> None:
    run("-m", *arguments)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that pip makes of this tree, with nothing fetched."""
    folder = tmp_path_factory.mktemp("wheel")
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--no-cache-dir"]
    run("-m", "pip", "wheel", *offline, "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_with_its_data_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    inside = {name for name in names if ".dist-info/" not in name}
    here = (path for path in (ROOT / "companion").rglob("*") if "__pycache__" not in path.parts)
    assert inside == {str(path.relative_to(ROOT).as_posix()) for path in here if path.is_file()}
    assert {"companion/py.typed", "companion/printed.json"} <= inside
    assert any(name.endswith("LICENSE") for name in names)


def test_the_wheel_installs_alone(wheel: Path, tmp_path: Path) -> None:
    offline = ["--no-deps", "--no-index", "--target", str(tmp_path / "site")]
    run("-m", "pip", "install", *offline, str(wheel))
    code = "import companion.mdp, importlib.resources as r; print(companion.__file__); "
    code += "print(len(r.files('companion').joinpath('printed.json').read_text()) > 1000)"
    printed = run("-c", code, cwd=tmp_path, PYTHONPATH=str(tmp_path / "site"))
    assert printed.split("\n")[:2] == [str(tmp_path / "site" / "companion" / "__init__.py"), "True"]

"""The package installs alone, is light to import, typed and tidy."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NUMPY_ONLY = ["mdp", "policy", "improvement", "mirror", "objective", "sampling", "interval"]
IMPORT_SECONDS = 0.3


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


@pytest.mark.parametrize("module", NUMPY_ONLY)
def test_the_tabular_part_needs_neither_torch_nor_matplotlib(module):
    code = f"import sys, companion.{module}; print(sys.modules.keys() & {{'torch', 'matplotlib'}})"
    assert run("-c", code).strip() == "set()"


def test_the_package_is_imported_in_a_moment():
    code = "import time; t = time.perf_counter(); import companion; print(time.perf_counter() - t)"
    assert min(float(run("-c", code)) for _ in range(5)) < IMPORT_SECONDS


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
def test_style_and_types(arguments):
    run("-m", *arguments)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that pip makes of this tree, with nothing fetched."""
    folder = tmp_path_factory.mktemp("wheel")
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--no-cache-dir"]
    run("-m", "pip", "wheel", *offline, "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_with_its_data_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    inside = {name for name in names if ".dist-info/" not in name}
    here = (path for path in (ROOT / "companion").rglob("*") if "__pycache__" not in path.parts)
    assert inside == {str(path.relative_to(ROOT).as_posix()) for path in here if path.is_file()}
    assert {"companion/py.typed", "companion/printed.json"} <= inside
    assert any(name.endswith("LICENSE") for name in names)


def test_the_wheel_installs_alone(wheel, tmp_path):
    offline = ["--no-deps", "--no-index", "--target", str(tmp_path / "site")]
    run("-m", "pip", "install", *offline, str(wheel))
    code = "import companion.mdp, importlib.resources as r; print(companion.__file__); "
    code += "print(len(r.files('companion').joinpath('printed.json').read_text()) > 1000)"
    printed = run("-c", code, cwd=tmp_path, PYTHONPATH=str(tmp_path / "site"))
    assert printed.split("\n")[:2] == [str(tmp_path / "site" / "companion" / "__init__.py"), "True"]

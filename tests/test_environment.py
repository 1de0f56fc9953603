"""pyproject.toml, requirements.lock, environment.yml and what is installed agree."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = [Requirement(line) for line in (ROOT / "requirements.lock").read_text().splitlines()]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def pins(environment: dict[str, str] | None = None) -> dict[str, str]:
    """The locked version of each package that the environment (default: this one) takes."""
    applicable = [pin for pin in LOCK if not pin.marker or pin.marker.evaluate(environment)]
    names = [canonicalize_name(pin.name) for pin in applicable]
    assert len(names) == len(set(names)), "a package is pinned twice"
    return {canonicalize_name(pin.name): str(pin.specifier)[2:] for pin in applicable}


def required() -> list[Requirement]:
    """Every requirement of the package and its extras, but the peers to be measured against."""
    extras = PROJECT["optional-dependencies"]
    groups = [PROJECT["dependencies"], *(extras[name] for name in extras if name != "bench")]
    requirements = [Requirement(line) for group in groups for line in group]
    return [requirement for requirement in requirements if requirement.name != PROJECT["name"]]


def test_every_line_of_the_lock_is_one_exact_version_of_a_named_package() -> None:
    loose = [pin for pin in LOCK if not re.fullmatch(r"==[^=*,]+", str(pin.specifier))]
    assert not loose, f"not pinned by ==: {', '.join(map(str, loose))}"
    assert not any(pin.url or pin.extras for pin in LOCK)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_every_requirement_is_pinned_within_its_range(python: str, platform: str) -> None:
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.7",
        "sys_platform": platform,
        "os_name": "nt" if platform == "win32" else "posix",
    }
    locked = pins(environment)
    for requirement in required():
        name = canonicalize_name(requirement.name)
        assert name in locked, f"{requirement} is not in requirements.lock"
        assert requirement.specifier.contains(locked[name]), f"{requirement}: {locked[name]}"


def test_the_extras_refer_to_extras_that_exist() -> None:
    extras = PROJECT["optional-dependencies"]
    for requirement in (Requirement(line) for group in extras.values() for line in group):
        if requirement.name == PROJECT["name"]:
            assert requirement.extras <= extras.keys()


def test_conda_takes_its_packages_from_the_lock_and_the_package_from_here() -> None:
    assert [entry for entry in CONDA if isinstance(entry, dict)] == [
        {"pip": ["-r requirements.lock", "-e ."]}
    ]
    names = [re.split("[=<>]", entry)[0] for entry in CONDA if isinstance(entry, str)]
    assert names == ["python", "pip"], "anything else would be a second place for a version"


def test_one_oldest_python_everywhere() -> None:
    (conda,) = [entry for entry in CONDA if str(entry).startswith("python=")]
    oldest = conda.removeprefix("python=")
    assert PROJECT["requires-python"] == f">={oldest}"
    assert Version(oldest) in SpecifierSet(PROJECT["requires-python"])
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert settings["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    major, minor = oldest.split(".")
    assert f"sys.version_info < ({major}, {minor})" in (ROOT / "Makefile").read_text()
    assert sys.version_info >= (int(major), int(minor))


def test_what_is_installed_is_what_is_locked() -> None:
    # The public part only: a CPU build of torch calls itself 2.13.0+cpu.
    locked = {name: Version(pin).public for name, pin in pins().items()}
    assert {name: Version(version(name)).public for name in locked} == locked

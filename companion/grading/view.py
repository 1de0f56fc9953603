"""What a submission's code sees of the file system: Python, libraries, a few modules."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
HANDED_OUT = "/handed-out"  # where the package's visible modules lie
SCRATCH = "/scratch"  # not /tmp: Python itself may lie there
# What an exercise hands out and what runs it. No module here holds an answer.
VISIBLE = (
    "__init__.py",
    "mdp.py",
    "policy.py",
    "validation.py",
    "exercises/__init__.py",
    "exercises/own.py",
    "exercises/part.py",
    "exercises/plain.py",
    "grading/__init__.py",
    "grading/channel.py",
    "grading/limits.py",
    "grading/supervisor.py",
    "grading/worker.py",
)
LIBRARIES = ("numpy", "scipy", "torch", "matplotlib", "array_api_compat")
SYSTEM = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache")
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


def python(*arguments: str) -> list[str]:
    """Return a command of the base interpreter, isolated from settings, sites and bytecode."""
    return [str(_interpreter()), "-I", "-S", "-B", "-X", "utf8", *arguments]


@functools.cache
def sites() -> list[Path]:
    """Return the folders that hold the libraries that an answer may use."""
    found = [importlib.util.find_spec(name) for name in LIBRARIES]
    files = [Path(spec.origin).resolve() for spec in found if spec and spec.origin]
    return list(dict.fromkeys(file.parents[1] for file in files))


def private(scratch_bytes: int) -> list[str]:
    """Return bubblewrap's options for what is seen inside."""
    words = [*_python_and_libraries(), "--proc", "/proc"]
    # Installed beside the libraries, this package's other modules would be seen as well.
    for copy in {PACKAGE, *(site / PACKAGE.name for site in sites())}:
        if copy.is_dir() and any(copy.is_relative_to(folder) for folder in _folders()):
            words += ["--size", "4096", "--tmpfs", str(copy), "--remount-ro", str(copy)]
    for device in DEVICES:
        words += ["--dev-bind", device, device]
    for name in VISIBLE:
        words += ["--ro-bind", str(PACKAGE / name), f"{HANDED_OUT}/companion/{name}"]
    words += ["--size", str(scratch_bytes), "--tmpfs", SCRATCH, "--chdir", SCRATCH]
    return [*words, "--remount-ro", "/"]


def readable(*programs: str) -> list[str]:
    """Return bubblewrap's options for a view that any user can read, with all that private needs.

    An interpreter in root's home lies behind folders that only root may enter.
    """
    files = [*programs, *(str(PACKAGE / name) for name in VISIBLE)]
    seen = [*map(str, _folders()), *files, *DEVICES]
    above = {str(folder) for path in seen for folder in Path(path).parents[:-1]}
    above.add("/tmp")  # where bubblewrap builds the next view
    words = [word for folder in sorted(above) for word in ("--perms", "0755", "--dir", folder)]
    words += _python_and_libraries()
    for file in files:
        words += ["--ro-bind", file, file]
    for device in (*DEVICES, "/proc"):
        words += ["--dev-bind", device, device]
    return words


def _python_and_libraries() -> list[str]:
    links = [path for path in SYSTEM if os.path.islink(path)]
    words = [word for path in links for word in ("--symlink", os.readlink(path), path)]
    return words + [word for path in _folders() for word in ("--ro-bind", str(path), str(path))]


@functools.cache
def _folders() -> list[Path]:
    """Return what is bound as it is, without what lies in another folder of the list."""
    base = Path(sys.base_prefix).resolve()
    paths = [Path(path) for path in SYSTEM if not os.path.islink(path)]
    paths += [base / "lib", base / "lib64", _interpreter(), *sites()]
    there = [path for path in dict.fromkeys(paths) if path.exists() and not path.is_symlink()]
    return [path for path in there if not any(other in path.parents for other in there)]


def _interpreter() -> Path:
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()

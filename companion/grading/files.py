"""Notebook files out of what a student handed in: a file, a folder, a zip file.

Nothing is unpacked to disk and no link is followed, so names can point nowhere.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from companion.grading.notebook import MOST_BYTES

MOST_FILES = 100  # notebooks of one student
MOST_ENTRIES = 5_000  # names in a folder or an archive that are looked at
MOST_DEPTH = 8
MOST_ALL_BYTES = 2**27  # of one student, unpacked
MOST_TABLE_BYTES = 2**20  # of a zip file's contents
NOTEBOOKS = (".ipynb", ".json")
END = struct.Struct("<4s4H2IH")  # a zip file's last record
END_64 = b"PK\x06\x07"


class File(NamedTuple):
    """A notebook's name and bytes, or why it has none."""

    name: str
    raw: bytes = b""
    problem: str = ""


def notebooks(path: Path, only: Mapping[str, str] | None = None) -> Iterator[File]:
    """Yield what may be a notebook in a file, a folder or a zip file, in the order of names.

    Args:
        path: of the student; or of the class, with the student's files below.
        only: the student's files, with the names to give them; without it, all are.
    """
    left, budget = MOST_FILES, MOST_ALL_BYTES
    for file in _picked(path, only) if only else _found(path):
        left -= 1
        budget -= len(file.raw)
        if left < 0 or budget < 0:
            yield File(path.name, problem="it holds too much; the rest was left out")
            return
        yield file


def _found(path: Path) -> Iterator[File]:
    if path.is_dir():
        for entry in _walk(path):
            yield from _file(Path(entry), os.path.relpath(entry, path))
    else:
        yield from _file(path, path.name)


def _picked(path: Path, only: Mapping[str, str]) -> Iterator[File]:
    """Yield some files of a class's folder or zip file."""
    if path.is_dir():
        for name, shown in only.items():
            yield from _file(path / name, shown)
        return
    try:
        with zipfile.ZipFile(path) as archive:
            for name, shown in only.items():
                file = _member(archive, archive.getinfo(name), shown)
                if name.lower().endswith(".zip") and not file.problem:
                    yield from _members(file.raw, shown)
                else:
                    yield file
    except (zipfile.BadZipFile, ValueError, NotImplementedError, KeyError, OSError):
        yield File(path.name, problem="it is not a zip file, or not a whole one")


def _walk(folder: Path) -> Iterator[str]:
    """Yield the paths of files below a folder, without hidden ones and without links."""
    seen = 0
    waiting = [(str(folder), 0)]
    while waiting:
        here, depth = waiting.pop()
        entries = []
        with contextlib.suppress(OSError), os.scandir(here) as found:
            entries = list(itertools.islice(found, MOST_ENTRIES))
        seen += len(entries)
        if seen > MOST_ENTRIES:
            return
        inner = []
        for entry in sorted(entries, key=lambda entry: entry.name):
            if hidden(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                inner.append((entry.path, depth + 1))
            else:
                yield entry.path
        waiting += [pair for pair in reversed(inner) if pair[1] <= MOST_DEPTH]


def hidden(name: str) -> bool:
    """Say whether a file or folder is none of the student's making."""
    return (name.startswith(".") and name != "..") or name == "__MACOSX"


def _file(path: Path, name: str) -> Iterator[File]:
    suffix = path.suffix.lower()
    if suffix not in (*NOTEBOOKS, ".zip"):
        return
    try:
        # A pipe would never end, a device neither.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as opened:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                yield File(name, problem="it is not a regular file")
            elif suffix == ".zip":
                yield from _members(opened.read(MOST_BYTES + 1), name)
            else:
                yield File(name, opened.read(MOST_BYTES + 1))
    except OSError as error:
        reason = "it is a link" if path.is_symlink() else error.strerror
        yield File(name, problem=f"it can't be read: {reason}")


def _members(raw: bytes, name: str) -> Iterator[File]:
    problem = _unsafe(raw)
    if problem:
        yield File(name, problem=problem)
        return
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            for member in sorted(archive.infolist(), key=lambda member: member.filename):
                inside = PurePosixPath(member.filename)
                if inside.suffix.lower() in NOTEBOOKS and not any(map(hidden, inside.parts)):
                    yield _member(archive, member, f"{name}: {member.filename[:200]}")
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        yield File(name, problem="it is not a zip file, or not a whole one")


def _unsafe(raw: bytes) -> str:
    """Say what is wrong with a zip file, if reading its table of contents would be no good idea."""
    if len(raw) > MOST_BYTES:
        return f"it is larger than {MOST_BYTES // 2**20} MB"
    at = raw.rfind(b"PK\x05\x06")
    if at < 0 or len(raw) - at < END.size:
        return "it is not a zip file, or not a whole one"
    *_, entries, size, _, _ = END.unpack_from(raw, at)
    if END_64 in raw[max(0, at - 20) : at] or entries > MOST_ENTRIES or size > MOST_TABLE_BYTES:
        return f"it holds more than {MOST_ENTRIES:,} files"
    return ""


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> File:
    if stat.S_ISLNK(member.external_attr >> 16):
        return File(name, problem="it is a link")
    if member.flag_bits & 1:
        return File(name, problem="it is encrypted")
    # Other methods may ask for gigabytes to unpack a few bytes.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return File(name, problem="it is compressed in an unusual way")
    try:
        with archive.open(member) as opened:
            return File(name, opened.read(MOST_BYTES + 1))
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError):
        return File(name, problem="it is damaged")

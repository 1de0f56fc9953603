"""Who handed in what: a class's folder or zip file, as a learning management system gives it."""

from __future__ import annotations

import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from companion.exercises import EXERCISES
from companion.grading.files import NOTEBOOKS, hidden
from companion.grading.lms import MOODLE, canvas_file, suffix

SUFFIXES = (*NOTEBOOKS, ".zip")
ATTEMPT = re.compile(r"-\d+$")  # Canvas numbers later files of one name
MOST_IN_ALL = 200_000  # names in a class's zip file


@dataclass(frozen=True)
class HandIn:
    """What one student handed in.

    Args:
        path: a folder, notebook or zip file of the student; or the class's folder or zip file.
        files: in the class's, the student's own files, with the names that they had before;
            empty if all is the student's.
        canvas: the student's name is out of Canvas's download, and so ends with a number there.
    """

    path: Path
    files: Mapping[str, str] = field(default_factory=dict)
    canvas: bool = False


def hand_ins(submissions: Path) -> dict[str, HandIn]:
    """Return each student's hand-in by the student's name.

    A class is a folder with a folder, a notebook or a zip file per student; or Canvas's download,
    in which all students' files lie side by side and begin with a student's name and number; or a
    zip file of Canvas's or Moodle's. A folder that holds just notebooks of the exercises is one
    student's; so is a single notebook, and any other zip file.

    Raises:
        ValueError: there is nothing to grade.
    """
    if submissions.is_file():
        return _of_zip(submissions) or {submissions.stem: HandIn(submissions)}
    if not submissions.is_dir():
        raise ValueError(f"{submissions}: there is no such folder or notebook")
    entries = sorted(
        path
        for path in submissions.iterdir()
        # Out of an archive, a link may lead anywhere.
        if not hidden(path.name) and not path.is_symlink()
    )
    flat = _canvas(path.name for path in entries if path.is_file())
    taken = {name for files in flat.values() for name in files}
    others = [
        path
        for path in entries
        if path.is_dir() or (path.name not in taken and suffix(path.name) in SUFFIXES)
    ]
    if not others and not flat:
        raise ValueError(f"{submissions}: no folder, notebook or zip file of a student is in it")
    if not flat and all(path.is_file() and path.stem in EXERCISES for path in others):
        return {submissions.resolve().name: HandIn(submissions)}
    stems = {path: path.name if path.is_dir() else path.stem for path in others}
    often = Counter([*stems.values(), *flat])
    found = {
        path.name if often[stem] > 1 and path.is_file() else stem: HandIn(path)
        for path, stem in stems.items()
    }
    for student, files in flat.items():
        name = f"{student} (files)" if student in found else student
        found[name] = HandIn(submissions, files, canvas=True)
    return found


def _of_zip(file: Path) -> dict[str, HandIn]:
    """Return the hand-ins in a class's zip file; none if it is one student's, or no zip file."""
    if suffix(file.name) != ".zip":
        return {}
    try:
        with zipfile.ZipFile(file) as archive:
            members = [PurePosixPath(name) for name in archive.namelist()[:MOST_IN_ALL]]
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        return {}
    seen = [m for m in members if suffix(m.name) in SUFFIXES and not any(map(hidden, m.parts))]
    flat = _canvas(str(member) for member in seen if len(member.parts) == 1)
    folders: dict[str, dict[str, str]] = defaultdict(dict)
    for member in seen:
        if len(member.parts) > 1 and MOODLE.fullmatch(member.parts[0]):
            folders[member.parts[0]][str(member)] = "/".join(member.parts[1:])
    found = {**flat, **folders}
    others = [m for m in seen if not any(str(m) in files for files in found.values())]
    if len(others) >= sum(map(len, found.values())):
        return {}
    for member in others:  # seen, so that its student is not lost
        found[str(member)] = {str(member): member.name}
    return {name: HandIn(file, files, canvas=name in flat) for name, files in found.items()}


def _canvas(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the files that Canvas has named, by student, with the names that they had before.

    Of a notebook that was handed in again the newest has the exercise's name.
    """
    found: dict[str, list[tuple[int, str, str]]] = defaultdict(list)
    for name in names:
        if parts := canvas_file(name):
            student, number, original = parts
            found[student].append((number, name, original))
    return {student: _newest(files) for student, files in sorted(found.items())}


def _newest(files: list[tuple[int, str, str]]) -> dict[str, str]:
    shown: dict[str, str] = {}
    for _, name, original in sorted(files, reverse=True):
        stem = PurePosixPath(original).stem
        exercise = stem if stem in EXERCISES else ATTEMPT.sub("", stem)
        end = suffix(original)
        before = f"{exercise}{end}" if exercise in EXERCISES and end in NOTEBOOKS else original
        shown[name] = name if before in shown.values() else before
    return shown

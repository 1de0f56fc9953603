"""Many runs, over seeds and settings: in parallel, each kept as soon as it is finished."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import joblib
import numpy as np
from tqdm import tqdm

from companion.cluster import backend

Settings = TypeVar("Settings")
Record = TypeVar("Record")
# What an unfinished file raises, or one of an older form.
UNREADABLE = (
    EOFError,
    KeyError,
    OSError,
    RuntimeError,  # and NotImplementedError: flags of the archive that never were set
    TypeError,
    ValueError,
    zipfile.BadZipFile,
)


@dataclass(frozen=True, eq=False)
class Swept(Generic[Record]):
    """What a sweep came to."""

    records: list[Record]  # of the runs that finished, in the order of the settings
    failed: dict[str, str]  # settings of each run that did not -> what went wrong


def sweep(
    run: Callable[[Settings], Record],
    settings: Sequence[Settings],
    folder: str | Path,
    record: Callable[..., Record],
    *,
    jobs: int = -1,
    scheduler: str | None = None,
) -> Swept[Record]:
    """Run a function for each of many settings, unless its record is there already.

    A run that fails stops no other, and is tried again by the next sweep. So are those that an
    interrupted sweep has not finished.

    Args:
        run: settings -> record; it must depend on the settings alone, and on no thread's timing.
        settings: frozen dataclasses of plain values, all different.
        folder: where a file for each finished run is kept, with its settings in it; a change of
            this package's code makes the run anew.
        record: the dataclass that `run` returns: a field `settings`, and arrays.
        jobs: runs at a time; -1 for one per core.
        scheduler: address of a dask cluster's scheduler; None for this machine.

    Returns:
        Swept: the same records, bit for bit, whatever the number of workers.

    Raises:
        ValueError: two of the settings are the same.
    """
    if len(set(settings)) < len(settings):
        raise ValueError(f"settings must all be different; {len(set(settings))} of them are")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = {one: folder / f"{_key(run, one)}.npz" for one in settings}
    done = {one: kept for one in settings if (kept := _load(paths[one], one, record)) is not None}
    todo = [one for one in settings if one not in done]
    failed = {}
    with backend(scheduler), tqdm(total=len(paths), initial=len(done), unit="run") as bar:
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        for one, result, problem in parallel(joblib.delayed(_attempt)(run, one) for one in todo):
            if problem:
                failed[str(one)] = problem
            else:
                _save(paths[one], result)
                done[one] = result
            bar.update()
    return Swept([done[one] for one in settings if one in done], failed)


def _attempt(run: Callable[[Any], Any], one: Any) -> tuple[Any, Any, str]:
    try:
        return one, run(one), ""
    except Exception as error:
        return one, None, f"{type(error).__name__}: {error}"


def _key(run: Callable[[Any], Any], one: Any) -> str:
    """Return a name of all that a record depends on, but for the libraries."""
    what = f"{_source()} {run.__module__}.{run.__qualname__} {type(one).__name__} {_text(one)}"
    return hashlib.blake2b(what.encode(), digest_size=12).hexdigest()


@cache
def _source() -> str:
    """Return a digest of this package's code, as any of it may decide what a run comes to."""
    digest = hashlib.blake2b(digest_size=12)
    for module in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(module.read_bytes())
    return digest.hexdigest()


def _text(one: Any) -> str:
    return json.dumps(asdict(one), sort_keys=True, default=_plain)


def _plain(value: Any) -> Any:
    """Return a number of NumPy's as one of Python's, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"settings must be plain values; got {value!r}")


def _save(path: Path, result: Any) -> None:
    arrays = {f.name: np.asarray(getattr(result, f.name)) for f in fields(result)}
    arrays["settings"] = np.array(_text(result.settings))
    # Its own name, as another sweep may write the same record; then moved, so none sees half of it.
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".unfinished", delete=False) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    os.replace(file.name, path)


def _load(path: Path, one: Any, record: Callable[..., Record]) -> Record | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            arrays = {name: kept[name] for name in kept.files}
        if str(arrays.pop("settings")) != _text(one):
            return None
        return record(settings=one, **arrays)
    except UNREADABLE:
        return None

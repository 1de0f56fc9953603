"""Sweeps: the same records from any number of workers, and no finished run is ever lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from distributed import LocalCluster
from numpy.typing import NDArray

from companion import ablation, training
from companion.ablation import AblationRun, AblationSettings
from companion.ppo_settings import PPOSettings
from companion.sweep import Swept, sweep
from companion.training import TrainingRun, TrainingSettings
from companion.trpo import TRPOSettings

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = [AblationSettings(seed, clip, updates=2) for seed in range(2) for clip in (0.2, None)]
ARRAYS = ("returns", "outside", "kl", "entropy", "parameters")


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def swept(folder: Path, **how: object) -> Swept[AblationRun]:
    return sweep(ablation.run, SETTINGS, folder, AblationRun, **how)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Swept[AblationRun]]:
    """A sweep by one worker."""
    folder = tmp_path_factory.mktemp("alone")
    return folder, swept(folder, jobs=1)


def assert_same(some: Swept[AblationRun], others: Swept[AblationRun]) -> None:
    assert not some.failed
    assert not others.failed
    for one, other in zip(some.records, others.records, strict=True):
        assert one.settings == other.settings
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_two_workers_give_the_same_bytes(
    alone: tuple[Path, Swept[AblationRun]], tmp_path: Path
) -> None:
    assert_same(swept(tmp_path, jobs=2), alone[1])
    assert files(tmp_path) == files(alone[0])
    assert [one.settings for one in alone[1].records] == SETTINGS


def test_a_dask_cluster_gives_the_same_bytes(
    alone: tuple[Path, Swept[AblationRun]], tmp_path: Path
) -> None:
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        assert_same(swept(tmp_path, scheduler=cluster.scheduler_address), alone[1])
    assert files(tmp_path) == files(alone[0])


@dataclass(frozen=True)
class Squares:
    number: int


@dataclass(frozen=True, eq=False)
class Square:
    settings: Squares
    value: NDArray[np.int64]


def square(settings: Squares) -> Square:
    return Square(settings, np.array(settings.number**2))


def fails_once(settings: Squares) -> Square:
    """Diverges at 2, until a file says that the fault is mended."""
    if settings.number == 2 and not Path(os.environ["MENDED"]).exists():
        raise FloatingPointError("the loss is NaN in update 7")
    return square(settings)


def never(settings: Squares) -> Square:
    raise AssertionError("a kept run was run again")


never.__module__, never.__qualname__ = square.__module__, square.__qualname__


def test_kept_runs_are_not_run_again_and_come_back_as_they_were(tmp_path: Path) -> None:
    some = [Squares(k) for k in range(5)]
    sweep(square, some, tmp_path, Square, jobs=1)
    again = sweep(never, some, tmp_path, Square, jobs=1)
    assert [int(one.value) for one in again.records] == [0, 1, 4, 9, 16]
    assert [one.settings for one in again.records] == some
    assert not again.failed


def test_a_run_that_fails_stops_no_other_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MENDED", str(tmp_path / "mended"))
    some, folder = [Squares(k) for k in range(4)], tmp_path / "runs"
    first = sweep(fails_once, some, folder, Square, jobs=1)
    assert [int(one.value) for one in first.records] == [0, 1, 9]
    assert first.failed == {"Squares(number=2)": "FloatingPointError: the loss is NaN in update 7"}
    (tmp_path / "mended").touch()
    second = sweep(fails_once, some, folder, Square, jobs=1)
    assert [int(one.value) for one in second.records] == [0, 1, 4, 9]
    assert not second.failed


@pytest.mark.parametrize("damage", [b"", b"PK half a file"])
def test_a_damaged_file_is_made_again(tmp_path: Path, damage: bytes) -> None:
    sweep(square, [Squares(3)], tmp_path, Square, jobs=1)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage)
    assert int(sweep(square, [Squares(3)], tmp_path, Square, jobs=1).records[0].value) == 9
    assert path.read_bytes() == whole


def test_files_say_what_was_run(tmp_path: Path) -> None:
    sweep(square, [Squares(3)], tmp_path, Square, jobs=1)
    (path,) = tmp_path.iterdir()
    with np.load(path) as kept:
        assert str(kept["settings"]) == '{"number": 3}'


def test_settings_that_repeat_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="settings must all be different; 1 of them are"):
        sweep(square, [Squares(1), Squares(1)], tmp_path, Square)


def test_an_interrupted_sweep_keeps_what_was_finished(
    alone: tuple[Path, Swept[AblationRun]], tmp_path: Path
) -> None:
    code = f"""
from pathlib import Path
from companion import ablation
from companion.ablation import AblationRun, AblationSettings
from companion.sweep import sweep
settings = [AblationSettings(s, c, updates=2) for s in range(2) for c in (0.2, None)]
settings += [AblationSettings(9, updates=100_000)]
sweep(ablation.run, settings, Path({str(tmp_path)!r}), AblationRun, jobs=1)
"""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("*.npz"))) < 4 and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0
    assert files(tmp_path) == files(alone[0])
    assert_same(swept(tmp_path, jobs=1), alone[1])


@pytest.mark.parametrize("learner", [PPOSettings(steps=40, minibatch=20), TRPOSettings(steps=40)])
def test_training_runs_are_swept_too(tmp_path: Path, learner: PPOSettings | TRPOSettings) -> None:
    some = [TrainingSettings("CartPole-v1", learner, iterations=2, seed=s) for s in range(2)]
    first = sweep(training.run, some, tmp_path, TrainingRun, jobs=1)
    again = sweep(training.run, some, tmp_path, TrainingRun, jobs=1)
    assert not first.failed
    for one, other in zip(first.records, again.records, strict=True):
        np.testing.assert_array_equal(one.steps, [40, 80])
        np.testing.assert_array_equal(one.parameters, other.parameters)
        np.testing.assert_array_equal(one.mean_return, other.mean_return)


def test_a_record_of_an_older_form_is_made_anew(tmp_path: Path) -> None:
    some = [Squares(3)]
    sweep(square, some, tmp_path, Square, jobs=1)
    (file,) = tmp_path.glob("*.npz")
    with np.load(file) as kept:
        np.savez(file, other=np.array(9), settings=kept["settings"])
    again = sweep(square, some, tmp_path, Square, jobs=1)
    assert [int(one.value) for one in again.records] == [9]


def test_a_folder_may_be_a_string_and_settings_numbers_of_numpy(tmp_path: Path) -> None:
    some = [Squares(np.int64(k)) for k in range(2)]  # type: ignore[arg-type]
    records = sweep(square, some, str(tmp_path), Square, jobs=1).records
    assert [int(one.value) for one in records] == [0, 1]


def test_flipped_bytes_of_a_record_only_cost_a_run(tmp_path: Path) -> None:
    sweep(square, [Squares(3)], tmp_path, Square, jobs=1)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.integers(len(whole), size=300):
        spoilt = bytearray(whole)
        spoilt[position] ^= 1 << rng.integers(8)
        path.write_bytes(spoilt)
        assert int(sweep(square, [Squares(3)], tmp_path, Square, jobs=1).records[0].value) == 9


def test_two_sweeps_write_one_record_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        done = [
            threads.submit(sweep, square, [Squares(3)], tmp_path, Square, jobs=1) for _ in range(40)
        ]
    assert all(int(one.result().records[0].value) == 9 for one in done)
    assert [path.suffix for path in tmp_path.iterdir()] == [".npz"]

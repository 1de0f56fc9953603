"""Make the stored runs: python -m companion.record [reference] [compiled] [details]

On two idle cores about nine minutes for the reference's, seven for the compiled agents' and four
for those of PPO's details. An interrupted call goes on where it stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from companion import ablation, ppo_details, training
from companion.ablation import AblationRun
from companion.ablation_lines import settings
from companion.ablation_records import DATA, REPEATED, Records, summarized, wanted
from companion.compiled.ppo import run
from companion.sweep import sweep
from companion.training import TrainingRun

FINISHED = Path("build/records")  # runs of an interrupted call are kept here


def runs_of(run: Callable[[Any], Any], jobs: Sequence[Any], record: Callable[..., Any]) -> Any:
    """Make the runs, or stop and say which failed."""
    swept = sweep(run, jobs, FINISHED, record)
    if swept.failed:
        raise SystemExit("\n".join(f"{one}: {why}" for one, why in swept.failed.items()))
    return swept.records


def record_reference() -> None:
    """Run the chapter's sixteen agents and forty seeds more; store a summary of the latter."""
    jobs = [one for clip in (0.2, None) for one in settings(clip, range(REPEATED))]
    runs = runs_of(ablation.run, jobs, AblationRun)
    clipped, unclipped = runs[:REPEATED], runs[REPEATED:]
    columns: dict[str, Any] = {
        name: np.array([[getattr(one, name) for one in some[:8]] for some in (clipped, unclipped)])
        for name in ("returns", "outside", "kl", "entropy", "parameters")
    }
    columns["returns"] = columns["returns"].astype(np.uint16)  # whole numbers up to 500
    np.savez_compressed(DATA / "ablation_reference.npz", **columns)
    both = summarized(clipped), summarized(unclipped)
    summary: dict[str, Any] = {
        name: np.stack([getattr(records, name) for records in both]).astype(np.float32)
        for name in Records._fields
    }
    np.savez_compressed(DATA / "ablation_repeated.npz", **summary)


def record_compiled() -> None:
    """Run compiled agents at every setting of the figures, and store a summary of each run."""
    cells = wanted()
    jobs = [[replace(one, seed=seed) for seed in range(n)] for one, n in cells.items()]
    records = iter(runs_of(run, [job for some in jobs for job in some], AblationRun))
    made = [summarized([next(records) for _ in some]) for some in jobs]
    keys = [
        (one.clip_range or np.inf, one.epochs, one.lr, one.entropy_coefficient) for one in cells
    ]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(records, name) for records in made]).astype(np.float16)
        for name in Records._fields
    }
    seeds = np.array(list(cells.values()))
    np.savez_compressed(DATA / "ablation_compiled.npz", settings=keys, seeds=seeds, **columns)


def record_details() -> None:
    """Train PPO with each set of details, and store its returns and KLs."""
    jobs = [one for detail in ppo_details.DETAILS for one in ppo_details.settings(detail)]
    runs = runs_of(training.run, jobs, TrainingRun)
    shape = (len(ppo_details.DETAILS), len(ppo_details.SEEDS), -1)
    columns: dict[str, Any] = {
        name: np.array([getattr(one, field) for one in runs], np.float32).reshape(shape)
        for name, field in (("returns", "mean_return"), ("kl", "kl"))
    }
    np.savez_compressed(DATA / "ppo_details.npz", **columns)


def main() -> None:
    """Make the files that are asked for, or all."""
    DATA.mkdir(exist_ok=True)
    makers = {
        "reference": record_reference,
        "compiled": record_compiled,
        "details": record_details,
    }
    asked = sys.argv[1:] or list(makers)
    if unknown := set(asked) - makers.keys():
        raise SystemExit(f"there are {', '.join(makers)}; got {', '.join(sorted(unknown))}")
    for name in asked:
        makers[name]()


if __name__ == "__main__":
    main()

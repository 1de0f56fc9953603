"""Make the stored runs: python -m companion.record [reference] [compiled] [details]

On two idle cores about two minutes for the reference's, seven for the compiled agents' and four
for those of PPO's details.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from companion import ablation, ppo_details, training
from companion.ablation import AblationRun
from companion.ablation_lines import settings
from companion.ablation_records import DATA, Records, summarized, wanted
from companion.compiled.ppo import run
from companion.sweep import sweep

FINISHED = Path("build/records")  # runs of an interrupted call are kept here


def record_reference() -> None:
    """Run the sixteen agents of the chapter, and store all that they are compared by."""
    jobs = [one for clip in (None, 0.2) for one in settings(clip)]
    runs = joblib.Parallel(n_jobs=-1)(joblib.delayed(ablation.run)(job) for job in jobs)
    both = runs[8:], runs[:8]
    columns: dict[str, Any] = {
        name: np.array([[getattr(one, name) for one in some] for some in both])
        for name in ("returns", "outside", "kl", "entropy", "parameters")
    }
    columns["returns"] = columns["returns"].astype(np.uint16)  # whole numbers up to 500
    np.savez_compressed(DATA / "ablation_reference.npz", **columns)


def record_compiled() -> None:
    """Run compiled agents at every setting of the figures, and store a summary of each run."""
    cells = wanted()
    jobs = [[replace(one, seed=seed) for seed in range(n)] for one, n in cells.items()]
    swept = sweep(run, [job for some in jobs for job in some], FINISHED, AblationRun)
    if swept.failed:
        raise SystemExit("\n".join(swept.failed))
    records = iter(swept.records)
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
    runs = joblib.Parallel(n_jobs=-1)(joblib.delayed(training.run)(job) for job in jobs)
    shape = (len(ppo_details.DETAILS), len(ppo_details.SEEDS), -1)
    columns: dict[str, Any] = {
        name: np.array([getattr(one, field) for one in runs], np.float32).reshape(shape)
        for name, field in (("returns", "mean_return"), ("kl", "kl"))
    }
    np.savez_compressed(DATA / "ppo_details.npz", **columns)


def main() -> None:
    """Make the files that are asked for, or both."""
    DATA.mkdir(exist_ok=True)
    makers = {
        "reference": record_reference,
        "compiled": record_compiled,
        "details": record_details,
    }
    for name in sys.argv[1:] or makers:
        makers[name]()


if __name__ == "__main__":
    main()

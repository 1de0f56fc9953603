"""Stored runs of the ablation, for figures and statements over more seeds than a reader waits for.

`python -m companion.record` makes them again. The reference's are what any machine computes, bit
for bit. The compiled agents' are one machine's: on another processor a run may take another course,
and only rates over seeds can be compared.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from companion.ablation import DEAD_BELOW, LAST, AblationRun, AblationSettings
from companion.ablation_lines import ENDS, SEEDS, settings

Floats = NDArray[np.float32]

DATA = Path(__file__).parent / "data"
POPULATION = 96  # seeds of the chapter's two settings
REPEATED = 48  # seeds of every other setting that a statement is about
CLIPS = (0.05, 0.2, 0.8, None)
EPOCHS = (1, 5, 20)
RATES = (1e-3, 3.16228e-3, 1e-2, 3.16228e-2)
BONUSES = (1e-3, 1e-2, 1e-1, 1.0)
MORE_BONUSES = (0.0, 0.1, 0.3)
WIDTHS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 2.0, 10.0, 100.0, 1e6)
OVERSIZED = tuple(product((0.01, 0.03, 0.1, 0.3), (0.0, 0.01, 0.1, 0.5)))  # lr, bonus


class Records(NamedTuple):
    """Runs of one setting, one row for each seed from 0."""

    returns: Floats  # (n, updates): mean of the batch's episodes
    outside: Floats  # (n,): share outside the band, all epochs
    outside_last: Floats  # (n,): the same, last epoch of each batch
    kl_last: Floats  # (n,): mean of log pi_old - log pi, last epoch of each batch, nats
    entropy_first: Floats  # (n,): mean of the first five updates, nats
    entropy_last: Floats  # (n,): of the last five

    @property
    def final(self) -> Floats:
        """Mean return of the last ten updates, (n,)."""
        mean: Floats = self.returns[:, -LAST:].mean(axis=1)
        return mean

    @property
    def dead(self) -> NDArray[np.bool_]:
        """Which runs are dead, (n,): below a return of 100 at the end."""
        below: NDArray[np.bool_] = self.final < DEAD_BELOW
        return below


def wanted() -> dict[AblationSettings, int]:
    """List the settings of the compiled agents, each with its number of seeds."""
    grid = [
        AblationSettings(clip_range=clip, epochs=epochs, lr=lr, entropy_coefficient=bonus)
        for clip, epochs, lr, bonus in product(CLIPS, EPOCHS, RATES, BONUSES)
    ]
    repeated = [
        *(
            AblationSettings(clip_range=clip, epochs=epochs)
            for clip in (0.2, None)
            for epochs in EPOCHS
        ),
        *(
            AblationSettings(clip_range=clip, entropy_coefficient=bonus)
            for clip, bonus in product((0.2, None), MORE_BONUSES)
        ),
        *(AblationSettings(clip_range=width) for width in WIDTHS),
        *(
            AblationSettings(clip_range=None, epochs=1, lr=lr, entropy_coefficient=bonus)
            for lr, bonus in OVERSIZED
        ),
    ]
    population = [AblationSettings(clip_range=clip) for clip in (0.2, None)]
    return (
        dict.fromkeys([*population, *repeated, *grid], len(SEEDS))
        | dict.fromkeys(repeated, REPEATED)
        | dict.fromkeys(population, POPULATION)
    )


def summarized(runs: list[AblationRun]) -> Records:
    """Keep of runs what is stored of them."""
    return Records(
        np.array([one.returns.mean(axis=1) for one in runs]),
        np.array([one.outside.mean() for one in runs]),
        np.array([one.outside[:, -1].mean() for one in runs]),
        np.array([one.kl[:, -1].mean() for one in runs]),
        np.array([one.entropy[:ENDS].mean() for one in runs]),
        np.array([one.entropy[-ENDS:].mean() for one in runs]),
    )


@cache
def reference() -> dict[str, list[AblationRun]]:
    """Return the sixteen runs of `companion.ablation` that the chapter's lines are made of.

    Returns:
        "clipped" and "no clip": one run for each of the seeds 0 to 7.

    >>> sum(one.dead for one in reference()["no clip"])
    5
    """
    kept = _stored("reference")
    names = ("returns", "outside", "kl", "entropy", "parameters")
    return {
        name: [
            AblationRun(one, *(kept[key][i, k].astype(np.float32) for key in names))
            for k, one in enumerate(settings(clip))
        ]
        for i, (name, clip) in enumerate({"clipped": 0.2, "no clip": None}.items())
    }


@cache
def repeated_reference() -> dict[str, Records]:
    """Return a summary of 48 runs each of `companion.ablation`, the chapter's eight seeds first.

    Returns:
        "clipped" and "no clip".

    >>> repeated_reference()["no clip"].dead[:8].tolist() == [
    ...     one.dead for one in reference()["no clip"]
    ... ]
    True
    """
    kept = _stored("repeated")
    return {
        name: Records(*(kept[column][i] for column in Records._fields))
        for i, name in enumerate(("clipped", "no clip"))
    }


def recorded(
    clip_range: float | None = 0.2,
    epochs: int = 20,
    lr: float = 1e-2,
    entropy_coefficient: float = 1e-2,
) -> Records:
    """Return the stored runs of compiled agents at a setting.

    Args:
        clip_range, epochs, lr, entropy_coefficient: as in `AblationSettings`.

    Returns:
        Records of 8 seeds at least.

    Raises:
        ValueError: there are no runs of this setting.

    >>> len(recorded(clip_range=None).dead)
    96
    """
    kept = _stored("compiled")
    key = (np.inf if clip_range is None else clip_range, epochs, lr, entropy_coefficient)
    (found,) = np.nonzero(np.isclose(kept["settings"], key, rtol=1e-4, atol=0).all(axis=1))
    if not found.size:
        raise ValueError(f"no runs are stored with {AblationSettings(0, *key[:4])}")
    ends = np.cumsum(kept["seeds"])
    rows = slice(ends[found[0]] - kept["seeds"][found[0]], ends[found[0]])
    return Records(*(kept[name][rows].astype(np.float32) for name in Records._fields))


@cache
def _stored(name: str) -> dict[str, NDArray[Any]]:
    with np.load(DATA / f"ablation_{name}.npz", allow_pickle=False) as kept:
        return {key: kept[key] for key in kept.files}

"""PPO's details on CartPole, one changed at a time: settings, and stored runs of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from companion.ablation_records import DATA
from companion.ppo_settings import PPOSettings
from companion.training import TrainingSettings

SEEDS = tuple(range(10))
ITERATIONS = 40
BASE = PPOSettings(
    n_envs=8,
    steps=128,
    epochs=10,
    minibatch=256,
    lr=2.5e-3,
    anneal_lr=True,
    normalize="minibatch",
    value_coefficient=0.5,
    max_grad_norm=0.5,
)
DETAILS = {
    "all of these": BASE,
    "advantages not standardized": replace(BASE, normalize="none"),
    "gradient not limited": replace(BASE, max_grad_norm=None),
    "step size not annealed": replace(BASE, anneal_lr=False),
    "value clipping": replace(BASE, value_clip_range=0.2),
    "stop at KL 0.015": replace(BASE, stop_kl=0.015),
}


class DetailRuns(NamedTuple):
    """Runs with one set of details, one row for each of SEEDS."""

    returns: NDArray[np.float32]  # (10, iterations): mean of the episodes that ended, NaN if none
    kl: NDArray[np.float32]  # (10, iterations): mean KL(old, new) of the last epoch, nats


def settings(detail: str) -> list[TrainingSettings]:
    """Return the settings of the ten runs with one set of details.

    Args:
        detail: a key of DETAILS.
    """
    learner = DETAILS[detail]
    return [TrainingSettings("CartPole-v1", learner, ITERATIONS, seed) for seed in SEEDS]


def recorded(detail: str) -> DetailRuns:
    """Return the stored runs with one set of details.

    Args:
        detail: a key of DETAILS.

    >>> recorded("value clipping").returns.shape
    (10, 40)
    """
    k = list(DETAILS).index(detail)
    kept = _stored()
    return DetailRuns(kept["returns"][k], kept["kl"][k])


@cache
def _stored() -> dict[str, NDArray[Any]]:
    with np.load(DATA / "ppo_details.npz", allow_pickle=False) as kept:
        return {key: kept[key] for key in kept.files}

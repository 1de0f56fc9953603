"""What a policy collected: steps of one or of many environments, in one row, cut into stretches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from companion import validation

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Batch:
    """Steps in the order of time, one stretch after the other; a stretch ends where `last` is.

    A stretch is an episode, or the part of one that was collected. Steps of environments side by
    side stand one environment after the other.

    Raises:
        ValueError: lengths differ, a number is not finite, or the last step ends no stretch.
    """

    obs: Floats  # (n, ...)
    actions: NDArray[Any]  # (n,) int64, or (n, d) float32
    rewards: Floats  # (n,)
    next_obs: Floats  # (n, ...): what followed, before any reset
    terminated: Flags  # (n,): the episode ended, and nothing is to come: the next value is 0
    truncated: Flags  # (n,): a time limit stopped the episode: the next value counts
    cut: Flags  # (n,): the collector stopped here, and the episode goes on in the next batch
    episode_returns: tuple[float, ...] = ()  # undiscounted, of the episodes that ended here

    def __post_init__(self) -> None:
        n = len(self.rewards)
        for name in ("obs", "actions", "next_obs", "terminated", "truncated", "cut"):
            if len(getattr(self, name)) != n:
                raise ValueError(
                    f"{name} must have one entry for each of the {n} rewards; "
                    f"it has {len(getattr(self, name))}"
                )
        for name in ("obs", "actions", "rewards", "next_obs"):
            validation.finite_array(name, getattr(self, name))
        if not self.last[-1]:
            raise ValueError("the last step must be terminated, truncated or cut; it is none")

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def last(self) -> Flags:
        """Where a stretch ends, (n,): the step before belongs to it, the one after does not."""
        return self.terminated | self.truncated | self.cut

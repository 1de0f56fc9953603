"""Small Gymnasium environments whose every step is known, and some that fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv


class Counter(gym.Env[np.ndarray, int]):
    """Shows (episode, step); pays the step's number; ends after `length` steps as `ending` says."""

    observation_space = gym.spaces.Box(-1e6, 1e6, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, length: int = 3, ending: str = "terminated") -> None:
        self.length, self.ending, self.episode, self.t = length, ending, -1, 0

    def reset(self, **_: Any) -> tuple[np.ndarray, dict[str, Any]]:
        self.episode, self.t = self.episode + 1, 0
        return self._obs(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.t += 1
        over = self.t == self.length
        flags = over and self.ending == "terminated", over and self.ending == "truncated"
        return self._obs(), self.reward(), *flags, {}

    def reward(self) -> float:
        return float(self.t)

    def _obs(self) -> np.ndarray:
        return np.array([self.episode, self.t], np.float32)


class Raises(Counter):
    """Breaks in its second step."""

    def reward(self) -> float:
        if self.t == 2:
            raise KeyError("out of coffee")
        return 1.0


class RaisesAtReset(Counter):
    """Never starts."""

    def reset(self, **_: Any) -> tuple[np.ndarray, dict[str, Any]]:
        raise OSError("no display")


class PaysNaN(Counter):
    """Pays NaN in its second step."""

    def reward(self) -> float:
        return float("nan") if self.t == 2 else 1.0


class ShowsNaN(Counter):
    """Shows NaN after its second step."""

    def _obs(self) -> np.ndarray:
        return np.array([0.0, np.nan if self.t == 2 else 0.0], np.float32)


class NeverEnds(Counter):
    """Has no end."""

    def __init__(self) -> None:
        super().__init__(length=-1)


def side_by_side(
    *makers: Callable[[], gym.Env[Any, Any]], mode: AutoresetMode = AutoresetMode.SAME_STEP
) -> SyncVectorEnv:
    """Return a vector environment of these."""
    return SyncVectorEnv(list(makers), autoreset_mode=mode)

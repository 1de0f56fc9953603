"""Collecting a batch from Gymnasium environments: whole episodes, or many side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from companion import validation
from companion.batch import Batch, Flags

Act = Callable[[NDArray[Any]], Any]  # observation, or one of each environment -> action or actions

LONGEST = 100_000  # steps, after which an episode is held to be endless


class EnvironmentFault(RuntimeError):
    """An environment raised an error, returned NaN, or did not end; the message says where."""


class _Step(NamedTuple):
    obs: Any
    action: Any
    reward: Any
    next_obs: Any
    terminated: Any
    truncated: Any


def episodes(env: gym.Env[Any, Any], act: Act, n: int, *, longest: int = LONGEST) -> Batch:
    """Collect whole episodes, one after the other.

    Args:
        env: environment. Every episode begins with a plain reset: seed it before.
        act: observation -> action.
        n: episodes, at least 1.
        longest: most steps of one episode, at least 1.

    Returns:
        Batch, without cuts.

    Raises:
        EnvironmentFault: the environment raises, returns a number that is not finite, or an
            episode is longer than `longest`.
        ValueError: n or longest is not a whole number of at least 1.
    """
    validation.whole("longest", longest, 1)
    steps: list[_Step] = []
    returns = []
    for episode in range(validation.whole("n", n, 1)):
        steps_before = len(steps)
        steps.extend(_episode(env, act, episode, longest))
        returns.append(math.fsum(step.reward for step in steps[steps_before:]))
    columns = _Step(*zip(*steps, strict=True))
    flags = np.array(columns.terminated, bool), np.array(columns.truncated, bool)
    return Batch(
        np.array(columns.obs, np.float32),
        _actions(columns.action),
        np.array(columns.reward, np.float32),
        np.array(columns.next_obs, np.float32),
        flags[0],
        flags[1],
        np.zeros(len(steps), bool),
        tuple(returns),
    )


def _episode(env: gym.Env[Any, Any], act: Act, episode: int, longest: int) -> Iterator[_Step]:
    with _blamed(f"at the reset of episode {episode}"):
        obs, _ = env.reset()
    for t in range(longest):
        action = act(obs)
        where = f"at step {t} of episode {episode}"
        with _blamed(where):
            next_obs, reward, terminated, truncated, _ = env.step(action)
        _finite(next_obs, reward, where)
        yield _Step(obs, action, reward, next_obs, terminated, truncated)
        if terminated or truncated:
            return
        obs = next_obs
    raise EnvironmentFault(f"episode {episode} has not ended after {longest} steps")


class VectorRollout:
    """Environments side by side, which go on from batch to batch.

    Args:
        envs: vector environment whose environments reset themselves, in the step that ends an
            episode or in the one after.
        seed: of the first reset: environment i gets seed + i.

    Raises:
        ValueError: the environments do not reset themselves.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any], seed: int) -> None:
        mode = envs.metadata.get("autoreset_mode")
        if mode not in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
            raise ValueError(f"envs must reset themselves; their autoreset_mode is {mode}")
        self._envs, self._next_step = envs, mode == AutoresetMode.NEXT_STEP
        with _blamed("at the first reset"):
            self._obs, _ = envs.reset(seed=seed)
        self._returns = np.zeros(envs.num_envs)
        self._ended = np.zeros(envs.num_envs, bool)
        self._all = np.ones(envs.num_envs, bool)

    def collect(self, act: Act, steps: int) -> Batch:
        """Collect the same number of steps from each environment.

        Args:
            act: observations (N, ...) -> actions (N, ...).
            steps: T, at least 1.

        Returns:
            Batch of N T steps, cut at the end of each environment's; less one for every episode
            that ended, if a step is spent on the reset.

        Raises:
            EnvironmentFault: an environment raises, or returns a number that is not finite.
            ValueError: steps is not a whole number of at least 1.
        """
        taken, wanted, finished = [], [], []
        for t in range(validation.whole("steps", steps, 1)):
            # In the next-step mode this step resets the environments that ended: no step of theirs.
            wanted.append(~self._ended if self._next_step else self._all)
            step = self._step(act, f"at step {t} of the batch")
            self._returns += wanted[-1] * step.reward
            self._ended = step.terminated | step.truncated
            if self._ended.any():
                finished.extend(self._returns[self._ended].tolist())
                self._returns[self._ended] = 0.0
            taken.append(step)
        return _by_environment(_Step(*zip(*taken, strict=True)), np.array(wanted), finished)

    def _step(self, act: Act, where: str) -> _Step:
        obs = self._obs
        actions = act(obs)
        with _blamed(where):
            following, reward, terminated, truncated, info = self._envs.step(actions)
        self._obs = next_obs = following
        if not self._next_step and "final_obs" in info:
            next_obs = following.copy()
            for i in np.flatnonzero(terminated | truncated):
                next_obs[i] = info["final_obs"][i]
        _finite(next_obs, reward, where)
        return _Step(obs, actions, reward, next_obs, terminated, truncated)


def _by_environment(columns: _Step, wanted: Flags, finished: list[float]) -> Batch:
    keep = wanted.T
    obs, actions, rewards, next_obs, terminated, truncated = (
        np.array(column).swapaxes(0, 1)[keep] for column in columns
    )
    cut = np.zeros_like(keep)
    cut[:, -1] = True
    return Batch(
        obs.astype(np.float32),
        _actions(actions),
        rewards.astype(np.float32),
        next_obs.astype(np.float32),
        terminated,
        truncated,
        cut[keep] & ~(terminated | truncated),
        tuple(finished),
    )


def _actions(actions: Any) -> NDArray[Any]:
    array = np.asarray(actions)
    return array.astype(np.float32 if np.issubdtype(array.dtype, np.floating) else np.int64)


@contextmanager
def _blamed(where: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        problem = f"the environment raised {type(error).__name__} {where}: {error}"
        raise EnvironmentFault(problem) from error


def _finite(obs: Any, reward: Any, where: str) -> None:
    if not (np.isfinite(obs).all() and np.isfinite(reward).all()):
        raise EnvironmentFault(
            f"the environment returned a number that is not finite {where}: "
            f"reward {reward}, observation {obs}"
        )

"""Batches hold what the environments did, step by step, and faults name their place."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from companion.batch import Batch
from companion.rollout import EnvironmentFault, VectorRollout, episodes
from tests.environments import (
    Counter,
    NeverEnds,
    PaysNaN,
    Raises,
    RaisesAtReset,
    ShowsNaN,
    side_by_side,
)

MODES = [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP]


def zero(obs: Any) -> Any:
    return 0 if np.ndim(obs) == 1 else np.zeros(len(obs), np.int64)


def test_whole_episodes() -> None:
    batch = episodes(Counter(3, "truncated"), lambda obs: int(obs[1] % 2), 2)
    np.testing.assert_array_equal(batch.obs, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]])
    np.testing.assert_array_equal(batch.next_obs[:, 1], [1, 2, 3, 1, 2, 3])
    np.testing.assert_array_equal(batch.actions, [0, 1, 0, 0, 1, 0])
    np.testing.assert_array_equal(batch.rewards, [1, 2, 3, 1, 2, 3])
    np.testing.assert_array_equal(np.flatnonzero(batch.truncated), [2, 5])
    np.testing.assert_array_equal(batch.last, batch.truncated)
    assert not batch.terminated.any()
    assert batch.episode_returns == (6.0, 6.0)
    assert batch.obs.dtype == batch.rewards.dtype == np.float32


@pytest.mark.parametrize("mode", MODES)
def test_side_by_side_no_step_crosses_a_reset(mode: AutoresetMode) -> None:
    """Every row follows from the environment's rule, whenever the environment resets itself."""
    makers = partial(Counter, 3, "terminated"), partial(Counter, 5, "truncated")
    rollout = VectorRollout(side_by_side(*makers, mode=mode), seed=0)
    for _ in range(4):
        batch = rollout.collect(zero, 7)
        np.testing.assert_array_equal(batch.next_obs[:, 0], batch.obs[:, 0])
        np.testing.assert_array_equal(batch.next_obs[:, 1], batch.obs[:, 1] + 1)
        np.testing.assert_array_equal(batch.rewards, batch.next_obs[:, 1])
        ends = np.flatnonzero(batch.last)
        joined = np.setdiff1d(np.arange(len(batch)), ends)
        np.testing.assert_array_equal(batch.obs[joined + 1], batch.next_obs[joined])
        assert batch.cut.sum() <= 2
        assert not (batch.cut & (batch.terminated | batch.truncated)).any()


@pytest.mark.parametrize("mode", MODES)
def test_terminated_truncated_and_cut_are_apart(mode: AutoresetMode) -> None:
    makers = partial(Counter, 3, "terminated"), partial(Counter, 4, "truncated")
    batch = VectorRollout(side_by_side(*makers, mode=mode), seed=0).collect(zero, 5)
    steps = [1, 2, 3, 1, 2] if mode == AutoresetMode.SAME_STEP else [1, 2, 3, 1]
    others = [1, 2, 3, 4, 1] if mode == AutoresetMode.SAME_STEP else [1, 2, 3, 4]
    np.testing.assert_array_equal(batch.rewards, steps + others)
    first = len(steps)
    np.testing.assert_array_equal(np.flatnonzero(batch.terminated), [2])
    np.testing.assert_array_equal(np.flatnonzero(batch.truncated), [first + 3])
    cuts = [4, 9] if mode == AutoresetMode.SAME_STEP else [3]
    np.testing.assert_array_equal(np.flatnonzero(batch.cut), cuts)
    assert sorted(batch.episode_returns) == [6.0, 10.0]


def test_returns_go_on_across_batches() -> None:
    rollout = VectorRollout(side_by_side(partial(Counter, 5)), seed=0)
    assert [rollout.collect(zero, 3).episode_returns for _ in range(5)] == [
        (),
        (15.0,),
        (),
        (15.0,),
        (15.0,),
    ]


def test_real_environments_bootstrap_from_the_observation_before_the_reset() -> None:
    made = gym.make_vec("CartPole-v1", 2, vectorization_mode="sync", max_episode_steps=5)
    batch = VectorRollout(made, seed=0).collect(zero, 30)
    assert batch.truncated.any()
    # A reset state is within 0.05 of the origin, one after five pushes to the left is not.
    assert (np.abs(batch.next_obs[batch.truncated]).max(axis=1) > 0.5).all()
    made.close()


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (Raises, "raised KeyError at step 1 of episode 0: 'out of coffee'"),
        (RaisesAtReset, "raised OSError at the reset of episode 0: no display"),
        (PaysNaN, "not finite at step 1 of episode 0: reward nan"),
        (ShowsNaN, "not finite at step 1 of episode 0: .* nan"),
        (NeverEnds, "episode 0 has not ended after 50 steps"),
    ],
)
def test_faults_of_an_environment(env: type[Counter], message: str) -> None:
    with pytest.raises(EnvironmentFault, match=message):
        episodes(env(), zero, 2, longest=50)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (Raises, "raised KeyError at step 1 of the batch"),
        (RaisesAtReset, "raised OSError at the first reset: no display"),
        (PaysNaN, "not finite at step 1 of the batch"),
        (ShowsNaN, "not finite at step 1 of the batch"),
    ],
)
def test_faults_side_by_side(env: type[Counter], message: str) -> None:
    with pytest.raises(EnvironmentFault, match=message):
        VectorRollout(side_by_side(Counter, env), seed=0).collect(zero, 5)


def test_an_endless_episode_is_cut() -> None:
    batch = VectorRollout(side_by_side(NeverEnds), seed=0).collect(zero, 5)
    np.testing.assert_array_equal(batch.last, [False] * 4 + [True])
    np.testing.assert_array_equal(batch.cut, batch.last)


def test_environments_that_do_not_reset_themselves_are_refused() -> None:
    with pytest.raises(ValueError, match="must reset themselves; their autoreset_mode is"):
        VectorRollout(side_by_side(Counter, mode=AutoresetMode.DISABLED), seed=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"actions": np.zeros(2, np.int64)}, "actions must have one entry for each of the 3"),
        ({"rewards": np.array([0, np.nan, 0])}, r"rewards must be finite; rewards\[1\] is nan"),
        ({"obs": np.full((3, 2), np.inf)}, r"obs must be finite; obs\[0, 0\] is inf"),
        ({"terminated": np.zeros(3, bool)}, "last step must be terminated, truncated or cut"),
    ],
)
def test_batches_that_cannot_be(change: dict[str, Any], message: str) -> None:
    good: Batch = episodes(Counter(), zero, 1)
    with pytest.raises(ValueError, match=message):
        replace(good, **change)

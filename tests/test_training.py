"""Training on environments: it learns, the same seed gives the same bits, faults are clear."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import nn

from companion.actor_critic import actor_critic
from companion.ppo import PPO, Diverged
from companion.ppo_settings import PPOSettings
from companion.rollout import EnvironmentFault, VectorRollout
from companion.training import TrainingSettings, train, train_on
from companion.trpo import TRPOSettings
from tests.environments import Counter, PaysNaN, side_by_side

CARTPOLE = PPOSettings(n_envs=8, steps=64, minibatch=128, epochs=8, lr=2e-3, max_grad_norm=0.5)


@pytest.mark.parametrize("settings", [CARTPOLE, TRPOSettings(n_envs=8, steps=128, delta=0.03)])
def test_cartpole_is_learned(settings: Any) -> None:
    _, records = train_on("CartPole-v1", settings, iterations=25, seed=0)
    first, last = (
        np.mean([r for it in part for r in it.episode_returns])
        for part in (records[:3], records[-3:])
    )
    assert first < 40
    assert last > 120
    assert records[-1].steps == 25 * settings.n_envs * settings.steps


def test_the_same_seed_gives_the_same_bits_and_leaves_torchs_generator_alone() -> None:
    settings = PPOSettings(n_envs=2, steps=32, minibatch=16, epochs=2)
    first, records = train_on("CartPole-v1", settings, iterations=3, seed=1)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    second, again = train_on("CartPole-v1", settings, iterations=3, seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    assert records == again
    other, _ = train_on("CartPole-v1", settings, iterations=3, seed=2)
    one, two, three = (
        nn.utils.parameters_to_vector(a.parameters()) for a in (first, second, other)
    )
    assert torch.equal(one, two)
    assert not torch.equal(one, three)


@pytest.mark.parametrize("settings", [CARTPOLE, TRPOSettings(n_envs=8, steps=128)])
def test_the_number_of_torchs_threads_does_not_matter(settings: Any) -> None:
    before = torch.get_num_threads()
    ends = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            agent, _ = train_on("CartPole-v1", settings, iterations=3, seed=1)
            ends.append(nn.utils.parameters_to_vector(agent.parameters()))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*ends)


def test_real_actions_are_clipped_to_the_box() -> None:
    settings = PPOSettings(n_envs=2, steps=20, minibatch=20, epochs=1)
    _, records = train_on("Pendulum-v1", settings, iterations=2, seed=0)
    assert all(np.isfinite(r.update.epochs[0].entropy) for r in records)


def run(env: Any, settings: PPOSettings, iterations: int = 3) -> Any:
    envs = side_by_side(env)
    spaces = envs.single_observation_space, envs.single_action_space
    rngs = [np.random.default_rng(k) for k in range(2)]
    learner = PPO(actor_critic(*spaces, seed=0), settings, rng=rngs[0])
    rollout = VectorRollout(envs, 0)
    return train(learner, rollout, steps=8, iterations=iterations, rng=rngs[1])


def test_a_diverging_run_names_the_step() -> None:
    with pytest.raises(Diverged, match=r"iteration \d, after \d+ environment steps: update \d"):
        run(Counter, PPOSettings(minibatch=4, epochs=1, lr=1e36))


@pytest.mark.parametrize("critic_epochs", [1, 10])
def test_a_diverging_trpo_run_names_the_step(critic_epochs: int) -> None:
    settings = TRPOSettings(steps=64, critic_epochs=critic_epochs, critic_lr=1e36)
    with pytest.raises(Diverged, match=r"iteration \d, after \d+ environment steps: update \d"):
        train_on("CartPole-v1", settings, iterations=3, seed=0)


def test_a_fault_of_the_environment_comes_through() -> None:
    with pytest.raises(EnvironmentFault, match="not finite at step 1 of the batch"):
        run(PaysNaN, PPOSettings(minibatch=4))


def test_spaces_of_another_kind() -> None:
    box = gym.spaces.Box(-1, 1, (3,))
    with pytest.raises(ValueError, match="observations must be a box of one axis"):
        actor_critic(gym.spaces.Discrete(3), gym.spaces.Discrete(2), seed=0)
    with pytest.raises(ValueError, match="actions must be discrete from 0, or a box"):
        actor_critic(box, gym.spaces.MultiDiscrete([2, 2]), seed=0)


def test_whole_numbers_that_are_floats_become_whole() -> None:
    settings = PPOSettings(n_envs=1.0, steps=8.0, minibatch=4.0, epochs=2.0)  # type: ignore[arg-type]
    assert settings == PPOSettings(n_envs=1, steps=8, minibatch=4, epochs=2)
    train_on("CartPole-v1", settings, iterations=1, seed=0)
    step = TRPOSettings(steps=16.0, halvings=2.0, critic_minibatch=8.0, cg_iterations=3.0)  # type: ignore[arg-type]
    train_on("CartPole-v1", step, iterations=1, seed=0)


def test_settings_name_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="gamma must be one number"):
        PPOSettings(gamma=[0.9, 0.5])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="learner must be PPOSettings or TRPOSettings; got None"):
        TrainingSettings("CartPole-v1", None, iterations=1)  # type: ignore[arg-type]

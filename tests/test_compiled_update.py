"""The compiled update against torch's, which finite differences check: one equals the other."""

from __future__ import annotations

import copy
import math
from dataclasses import astuple, replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from companion import ppo
from companion.actor_critic import ActorCritic, actor_critic
from companion.compiled import update
from companion.distribution import Categorical
from companion.ppo_settings import PPOSettings
from companion.training import train_on
from tests.test_ppo import OBJECTIVES, OBS, flat, make

SETTINGS = PPOSettings(epochs=3, minibatch=15, lr=0.01)
OPTIONS: dict[str, dict[str, Any]] = OBJECTIVES | {
    "adaptive kl": {"method": "adaptive kl", "beta": 2.0, "target_kl": 1e-3},
    "whole batch": {"minibatch": None},
    "gradient limited": {"max_grad_norm": 0.1},
    "annealed": {"anneal_lr": True, "anneal_clip": True},
    "stopped": {"stop_kl": 1e-4},
    "value clip often at work": {"value_coefficient": 10.0, "value_clip_range": 0.01, "lr": 0.1},
}


@pytest.mark.parametrize("change", OPTIONS.values(), ids=OPTIONS)
def test_parameters_and_records_are_torchs_to_rounding(change: dict[str, Any]) -> None:
    agent, batch = make("discrete")
    other = copy.deepcopy(agent)
    start, settings = flat(agent), replace(SETTINGS, **change)
    learners = [
        kind(some, settings, rng=np.random.default_rng(0))
        for kind, some in ((ppo.PPO, agent), (update.PPO, other))
    ]
    for progress in (0.0, 0.5):
        expected, record = (learner.update(batch, progress) for learner in learners)
        assert len(record.epochs) == len(expected.epochs)
        for ours, theirs in zip(record.epochs, expected.epochs, strict=True):
            assert astuple(ours) == pytest.approx(astuple(theirs), rel=1e-3, abs=1e-5)
        assert record.beta == expected.beta
    assert (flat(agent) - start).norm() > 1e-2
    torch.testing.assert_close(flat(other) - start, flat(agent) - start, rtol=1e-3, atol=1e-5)


def test_a_whole_run_is_torchs_as_long_as_no_draw_is_another() -> None:
    settings = PPOSettings(n_envs=2, steps=64, minibatch=32, epochs=2)
    theirs, ours = (
        train_on("CartPole-v1", settings, iterations=3, seed=1, ppo=kind)
        for kind in (ppo.PPO, update.PPO)
    )
    assert [one.episode_returns for one in ours[1]] == [one.episode_returns for one in theirs[1]]
    torch.testing.assert_close(flat(ours[0]), flat(theirs[0]), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("network", ["policy", "value"])
def test_a_diverging_run_says_where_and_what_was_healthy_last(network: str) -> None:
    agent, batch = make("discrete")
    learner = update.PPO(agent, PPOSettings(epochs=2), rng=np.random.default_rng(0))
    record = learner.update(batch)
    with torch.no_grad():
        next(getattr(agent, network).parameters()).fill_(math.nan)
    with pytest.raises(ppo.Diverged) as caught:
        learner.update(batch)
    assert "update 1, epoch 0, minibatch 0" in str(caught.value)
    assert str(record.epochs[-1]) in str(caught.value)


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_a_ratio_that_is_infinite_is_no_step() -> None:
    agent, batch = make("discrete")
    learner = update.PPO(agent, PPOSettings(minibatch=20, lr=1e36), rng=np.random.default_rng(0))
    with pytest.raises(ppo.Diverged, match=r"update 0, epoch .*the loss is .*, the largest ratio"):
        learner.update(batch)


@pytest.mark.parametrize("backward", [False, True])
def test_slopes_that_are_taken_away_between_two_updates_change_nothing(backward: bool) -> None:
    agent, batch = make("discrete")
    other, settings = copy.deepcopy(agent), replace(SETTINGS, max_grad_norm=0.1)
    learners = [update.PPO(some, settings, rng=np.random.default_rng(0)) for some in (agent, other)]
    for learner in learners:
        learner.update(batch)
    other.zero_grad()
    if backward:  # tensors of its own, which the norm must not miss
        other.values(torch.from_numpy(batch.obs)).sum().backward()
    expected, record = (learner.update(batch) for learner in learners)
    assert record == expected
    assert torch.equal(flat(other), flat(agent))


class Scaled(nn.Sequential):
    def forward(self, x: Tensor) -> Any:
        return super().forward(10 * x)


class Wide(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return 10 * super().forward(x)


def perceptron(outputs: int, **how: Any) -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 8, **how), nn.Tanh(), nn.Linear(8, outputs))


def tied() -> nn.Sequential:
    twice = nn.Linear(3, 3)
    return nn.Sequential(twice, nn.Tanh(), twice)


def hooked() -> nn.Sequential:
    network = perceptron(4)
    network[1].register_forward_hook(lambda _, given, output: 10 * output)
    return network


def normalized() -> nn.Sequential:
    network = perceptron(4)
    nn.utils.spectral_norm(network[0])
    return network


LAYERS = "linear layers with tanh between"


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4)), LAYERS),
        (nn.Sequential(nn.Linear(3, 4), nn.Tanh()), LAYERS),
        (Scaled(*perceptron(4)), LAYERS),
        (nn.Sequential(Wide(3, 8), nn.Tanh(), nn.Linear(8, 4)), LAYERS),
        (perceptron(4, bias=False), LAYERS),
        (perceptron(4).requires_grad_(False), LAYERS),
        (tied(), LAYERS),
        (hooked(), LAYERS),
        (normalized(), LAYERS),
        (perceptron(4).double(), "must have float32 parameters; some are torch.float64"),
    ],
)
def test_networks_of_another_kind_are_refused(policy: nn.Module, message: str) -> None:
    agent = ActorCritic(policy, perceptron(1), Categorical)
    with pytest.raises(ValueError, match=message):
        update.PPO(agent, SETTINGS, rng=np.random.default_rng(0))


def test_an_agent_that_may_do_something_else_is_refused() -> None:
    class Cold(ActorCritic):
        def distribution(self, obs: Tensor) -> Categorical:
            return Categorical.of(10 * self.policy(obs))

    agent = Cold(perceptron(4), perceptron(1), Categorical)
    with pytest.raises(ValueError, match=r"of no subclass; got .*Cold"):
        update.PPO(agent, SETTINGS, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("actions", "shared", "message"),
    [
        (gym.spaces.Box(-1, 1, (2,)), False, "must have a categorical policy"),
        (gym.spaces.Discrete(4), True, "must not share parameters"),
    ],
)
def test_agents_of_another_kind_are_refused(
    actions: gym.Space[Any], shared: bool, message: str
) -> None:
    agent = actor_critic(OBS, actions, seed=0, hidden=(8,), shared=shared)
    with pytest.raises(ValueError, match=message):
        update.PPO(agent, SETTINGS, rng=np.random.default_rng(0))

"""A policy and a value network, made for an environment's spaces."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from companion import validation
from companion.distribution import Categorical, Distribution, Gaussian
from companion.rollout import Act

POLICY_GAIN = 0.01  # of the policy's last layer: the first policy hardly prefers an action


class ActorCritic(nn.Module):
    """A policy with its distribution of actions, and a value network.

    Args:
        policy: observations (N, d) -> rows that the distribution is made of.
        value: observations (N, d) -> (N, 1). It may share modules with the policy.
        kind: `Categorical` or `Gaussian`.
    """

    def __init__(
        self, policy: nn.Module, value: nn.Module, kind: type[Categorical] | type[Gaussian]
    ) -> None:
        super().__init__()
        self.policy, self.value, self.kind = policy, value, kind

    def distribution(self, obs: Tensor) -> Distribution:
        """Return the distribution of actions for each observation."""
        return self.kind.of(self.policy(obs))

    def values(self, obs: Tensor) -> Tensor:
        """Return the value (N,) of each observation."""
        v: Tensor = self.value(obs).squeeze(-1)
        return v

    def sampler(self, rng: np.random.Generator) -> Act:
        """Return the function that draws an action for each of a row of observations."""

        @torch.no_grad()
        def act(obs: NDArray[Any]) -> NDArray[Any]:
            return self.distribution(torch.as_tensor(obs, dtype=torch.float32)).sample(rng)

        return act


class GaussianPolicy(nn.Module):
    """Means from a network, and standard deviations that do not depend on the state.

    Args:
        mean: observations (N, ...) -> means (N, d).
        dimensions: d.
    """

    def __init__(self, mean: nn.Module, dimensions: int) -> None:
        super().__init__()
        self.mean = mean
        self.log_std = nn.Parameter(torch.zeros(dimensions))

    def forward(self, obs: Tensor) -> Tensor:
        """Return means and logarithms of standard deviations, (N, 2 d)."""
        mean = self.mean(obs)
        return torch.cat([mean, self.log_std.expand_as(mean)], -1)


def actor_critic(
    observations: gym.Space[Any],
    actions: gym.Space[Any],
    *,
    seed: int,
    hidden: tuple[int, ...] = (64, 64),
    shared: bool = False,
) -> ActorCritic:
    """Make networks of tanh layers with orthogonal weights and a small policy head.

    Args:
        observations: box of one axis.
        actions: discrete from 0, or a box of one axis.
        seed: of the weights; torch's global generator is left as it was.
        hidden: width of each hidden layer.
        shared: whether policy and value share the hidden layers.

    Returns:
        ActorCritic, float32.

    Raises:
        ValueError: a space is of another kind.

    Reference: Andrychowicz et al. 2021, section 3.2; Huang et al. 2022, details 2 and 15.
    """
    if not isinstance(observations, gym.spaces.Box) or len(observations.shape) != 1:
        raise ValueError(f"observations must be a box of one axis; got {observations}")
    outputs, kind = _outputs(actions)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(validation.whole("seed", seed, 0))
        bodies = [_body(observations.shape[0], hidden) for _ in range(1 if shared else 2)]
        policy: nn.Module = nn.Sequential(*bodies[0], _linear(hidden[-1], outputs, POLICY_GAIN))
        value = nn.Sequential(*bodies[-1], _linear(hidden[-1], 1, 1.0))
    if kind is Gaussian:
        policy = GaussianPolicy(policy, outputs)
    return ActorCritic(policy, value, kind)


def _outputs(actions: gym.Space[Any]) -> tuple[int, type[Categorical] | type[Gaussian]]:
    if isinstance(actions, gym.spaces.Discrete) and actions.start == 0:
        return int(actions.n), Categorical
    if isinstance(actions, gym.spaces.Box) and len(actions.shape) == 1:
        return actions.shape[0], Gaussian
    raise ValueError(f"actions must be discrete from 0, or a box of one axis; got {actions}")


def _body(inputs: int, hidden: tuple[int, ...]) -> list[nn.Module]:
    widths = (inputs, *hidden)
    layers: list[nn.Module] = []
    for width, following in pairwise(widths):
        layers += [_linear(width, following, math.sqrt(2)), nn.Tanh()]
    return layers


def _linear(inputs: int, outputs: int, gain: float) -> nn.Linear:
    layer = nn.Linear(inputs, outputs, dtype=torch.float32)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer

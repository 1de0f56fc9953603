"""TRPO as a loop on batches: the critic fitted by minibatches, the policy by one natural step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from companion.actor_critic import ActorCritic
from companion.batch import Batch
from companion.distribution import Categorical
from companion.ppo import Diverged
from companion.ppo_loss import freeze
from companion.ppo_settings import PPOSettings
from companion.trust_region import LineSearch, trpo_step
from companion.validation import non_negative, positive, whole


@dataclass(frozen=True)
class TRPOSettings:
    """How TRPO learns; the defaults are usual ones.

    Raises:
        ValueError: a field is not as its comment says.

    Reference: Schulman et al. 2015, table 2 and appendix D.
    """

    n_envs: int = 1  # environments side by side; >= 1
    steps: int = 2048  # steps of each in a batch; >= 1
    gamma: float = 0.99  # discount; 0 to 1
    lam: float = 0.95  # GAE's lambda; 0 to 1
    delta: float = 0.01  # KL radius, nats; > 0
    damping: float = 0.1  # added to the Fisher matrix; >= 0
    cg_iterations: int = 10  # steps of conjugate gradient; >= 1
    halvings: int = 10  # most of the line search; >= 0
    fisher_every: int = 1  # Fisher-vector products use one observation in this many; >= 1
    critic_epochs: int = 10  # passes of the critic over each batch; >= 1
    critic_minibatch: int = 64  # samples in one step of its Adam; >= 1
    critic_lr: float = 1e-3  # its step size; > 0

    def __post_init__(self) -> None:
        PPOSettings(n_envs=self.n_envs, steps=self.steps, gamma=self.gamma, lam=self.lam)
        for name in ("delta", "critic_lr"):
            positive(name, getattr(self, name))
        non_negative("damping", self.damping)
        least = dict.fromkeys(("n_envs", "steps", "cg_iterations", "fisher_every"), 1)
        least |= {"halvings": 0, "critic_epochs": 1, "critic_minibatch": 1}
        for name, at_least in least.items():
            object.__setattr__(self, name, whole(name, getattr(self, name), at_least))


@dataclass(frozen=True)
class TRPORecord:
    """What an update did."""

    search: LineSearch  # gain of the surrogate, mean KL in nats, halvings
    predicted_gain: float  # g . step
    value_loss: float  # mean squared error in the critic's last pass


class TRPO:
    """An agent of separate networks and discrete actions that learns by TRPO.

    Args:
        agent: policy and value network; the parameters change in place.
        settings: how.
        rng: source of the critic's shuffles.

    Raises:
        ValueError: the policy is not categorical, or shares parameters with the value network.
    """

    def __init__(
        self, agent: ActorCritic, settings: TRPOSettings, *, rng: np.random.Generator
    ) -> None:
        if agent.kind is not Categorical:
            raise ValueError(f"agent must have a categorical policy; its kind is {agent.kind}")
        if {id(w) for w in agent.policy.parameters()} & {id(w) for w in agent.value.parameters()}:
            raise ValueError("agent's policy and value network must not share parameters")
        self.agent, self.settings, self.rng = agent, settings, rng
        self.adam = torch.optim.Adam(agent.value.parameters(), settings.critic_lr)
        self.updates = 0
        self.healthy: TRPORecord | None = None

    def update(self, batch: Batch, progress: float = 0.0) -> TRPORecord:
        """Learn from a batch that the present policy collected.

        Args:
            batch: steps.
            progress: ignored: nothing is annealed.

        Returns:
            TRPORecord.

        Raises:
            Diverged: an advantage, a logit or the critic's loss is not finite.
        """
        try:
            self.healthy = self._update(batch)
        except (ValueError, FloatingPointError) as error:
            raise Diverged(
                f"update {self.updates}: {error}; last healthy update: {self.healthy}"
            ) from error
        self.updates += 1
        return self.healthy

    def _update(self, batch: Batch) -> TRPORecord:
        settings = self.settings
        frozen = freeze(self.agent, batch, PPOSettings(gamma=settings.gamma, lam=settings.lam))
        step = trpo_step(
            self.agent.policy,
            frozen.obs,
            frozen.actions,
            frozen.adv,
            delta=settings.delta,
            damping=settings.damping,
            cg_iterations=settings.cg_iterations,
            halvings=settings.halvings,
            fisher_every=settings.fisher_every,
        )
        for _ in range(settings.critic_epochs):
            value_loss = self._fit_critic(frozen.obs, frozen.target)
        return TRPORecord(step.search, step.predicted_gain, value_loss)

    def _fit_critic(self, obs: torch.Tensor, target: torch.Tensor) -> float:
        order = torch.from_numpy(self.rng.permutation(len(target)))
        total = 0.0
        for index in torch.split(order, self.settings.critic_minibatch):
            loss = ((self.agent.values(obs[index]) - target[index]) ** 2).mean()
            if not torch.isfinite(loss):
                raise FloatingPointError(f"the critic's loss is {loss.item()}")
            self.adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.adam.step()
            total += loss.item() * len(index)
        return total / len(target)

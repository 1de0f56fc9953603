"""The chapter's eight seeds on CartPole, clip on and off: the protocol as it stands, to be read.

One network for the policy and one for the value, full-batch epochs, one agent at a time, on one
thread of torch: every line that the chapter prints comes out. `companion.compiled.ppo` is the one
to be fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from companion import validation
from companion.advantage import Advantages, lambda_targets, standardized
from companion.batch import Batch
from companion.distribution import Categorical
from companion.objective import clipped_objective, fraction_outside, ratio
from companion.rollout import Act, episodes
from companion.threads import one_thread

OBSERVATIONS, HIDDEN, ACTIONS = 4, 64, 2
CRITIC_STEPS = 20
GAMMA, LAM = 0.99, 0.95
DEAD_BELOW, LAST = 100.0, 10  # a run is dead if its last ten updates average below this return

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class AblationSettings:
    """One agent's run; the defaults are the chapter's.

    Raises:
        ValueError: a field is not as its comment says.

    >>> AblationSettings(epochs=0)
    Traceback (most recent call last):
    ValueError: epochs must be a whole number of at least 1; got 0
    """

    seed: int = 0  # of the networks, of the environment and of the actions; >= 0
    clip_range: float | None = 0.2  # half-width of the clip; > 0, or None: maximize r A alone
    epochs: int = 20  # full-batch steps of the policy on each batch; >= 1
    lr: float = 1e-2  # Adam's step size, of both networks; > 0
    entropy_coefficient: float = 0.01  # weight of the mean entropy in the objective; >= 0
    updates: int = 60  # batches; >= 1
    episodes: int = 8  # whole episodes in a batch; >= 1
    band: float = 0.2  # a ratio further than this from 1 counts as outside; > 0

    def __post_init__(self) -> None:
        for name, at_least in (("seed", 0), ("epochs", 1), ("updates", 1), ("episodes", 1)):
            validation.whole(name, getattr(self, name), at_least)
        for name in ("lr", "band") if self.clip_range is None else ("lr", "band", "clip_range"):
            validation.positive(name, getattr(self, name))
        validation.non_negative("entropy_coefficient", self.entropy_coefficient)


@dataclass(frozen=True, eq=False)
class AblationRun:
    """What came of one agent; rows of diagnostics are taken before each step of the policy."""

    settings: AblationSettings
    returns: Floats  # (updates, episodes): of every episode, in the order they were played
    outside: Floats  # (updates, epochs): share of the ratios outside the band
    kl: Floats  # (updates, epochs): mean of log pi_old - log pi, nats
    entropy: Floats  # (updates, epochs): mean, nats
    parameters: Floats  # (P,): of the policy at the end, in torch's order

    @property
    def dead(self) -> bool:
        """Whether the last ten updates average below a return of 100."""
        return float(self.returns[-LAST:].mean()) < DEAD_BELOW


class Agent(NamedTuple):
    """Policy and value network, each with its own optimizer."""

    policy: nn.Module
    value: nn.Module
    policy_adam: torch.optim.Adam
    value_adam: torch.optim.Adam


class Samples(NamedTuple):
    """What the policy's loss needs of each step of a batch."""

    obs: Tensor  # (n, 4)
    actions: Tensor  # (n,)
    adv: Tensor  # (n,), standardized
    logp_old: Tensor  # (n,), of the policy that collected


class Losses(NamedTuple):
    """A policy's loss on samples, and what it was made of."""

    loss: Tensor
    ratio: Tensor  # (n,)
    kl: Tensor  # mean of log pi_old - log pi
    entropy: Tensor  # mean


def run(settings: AblationSettings) -> AblationRun:
    """Train one agent.

    maximize mean min(r A, clip(r, 1 - eps, 1 + eps) A) + 0.01 entropy  (chapter, section 8)

    Args:
        settings: seed, clip, and what the chapter leaves as it is.

    Returns:
        AblationRun. It depends on the settings alone; torch's global generator and its number of
        threads are left as they were found.

    Raises:
        FloatingPointError: a number is not finite; the message says in which update.

    Reference: Schulman et al. 2017, algorithm 1; protocol of the printed figures.
    """
    with one_thread(), gym.make("CartPole-v1") as env:
        agent = initial_agent(settings.seed, settings.lr)
        env.reset(seed=settings.seed)
        act = sampled(agent.policy, np.random.default_rng(settings.seed))
        returns, rows = [], []
        for update in range(settings.updates):
            try:
                batch = episodes(env, act, settings.episodes)
                fit_critic(agent, batch)
                rows.append(improve(agent, samples(agent, batch), settings))
            except ValueError as error:
                healthy = rows[-1][-1] if rows else "none"
                raise FloatingPointError(
                    f"lost in update {update} of {settings}: {error}; last healthy outside, KL and "
                    f"entropy: {healthy}"
                ) from error
            returns.append(batch.episode_returns)
    outside, kl, entropy = np.moveaxis(np.array(rows, np.float32), -1, 0)
    parameters = nn.utils.parameters_to_vector(agent.policy.parameters()).detach().numpy()
    return AblationRun(settings, np.array(returns, np.float32), outside, kl, entropy, parameters)


def initial_agent(seed: int, lr: float = 1e-2) -> Agent:
    """Make the networks of a seed; torch's global generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        policy, value = network(ACTIONS), network(1)
    adams = (torch.optim.Adam(net.parameters(), lr) for net in (policy, value))
    return Agent(policy, value, *adams)


def network(outputs: int) -> nn.Sequential:
    """Make a network of one hidden layer, with torch's initialization."""
    hidden = nn.Linear(OBSERVATIONS, HIDDEN, dtype=torch.float32)
    return nn.Sequential(hidden, nn.Tanh(), nn.Linear(HIDDEN, outputs, dtype=torch.float32))


def sampled(policy: nn.Module, rng: np.random.Generator) -> Act:
    """Return the function that draws an action for an observation."""

    @torch.no_grad()
    def act(obs: Floats) -> int:
        p = policy(torch.from_numpy(obs)).softmax(-1).numpy()
        return int(rng.choice(ACTIONS, p=p))

    return act


@torch.no_grad()
def estimate(value: nn.Module, batch: Batch) -> Advantages:
    """Estimate advantages and value targets with the newest critic."""
    v, following = (
        value(torch.from_numpy(obs)).squeeze(-1).numpy() for obs in (batch.obs, batch.next_obs)
    )
    return lambda_targets(batch.rewards, v, following, batch.terminated, batch.last, GAMMA, LAM)


def fit_critic(agent: Agent, batch: Batch) -> None:
    """Take the critic's steps on the mean squared error, with new targets before each."""
    obs = torch.from_numpy(batch.obs)
    for _ in range(CRITIC_STEPS):
        target = torch.from_numpy(estimate(agent.value, batch).target)
        loss = ((agent.value(obs).squeeze(-1) - target) ** 2).mean()
        step(agent.value_adam, loss)


@torch.no_grad()
def samples(agent: Agent, batch: Batch) -> Samples:
    """Freeze what the policy's steps on a batch start from."""
    obs, actions = torch.from_numpy(batch.obs), torch.from_numpy(batch.actions)
    adv = torch.from_numpy(standardized(estimate(agent.value, batch).adv))
    return Samples(obs, actions, adv, Categorical.of(agent.policy(obs)).logp(actions))


def improve(
    agent: Agent, batch: Samples, settings: AblationSettings
) -> list[tuple[float, float, float]]:
    """Take the policy's full-batch steps; return outside, KL and entropy before each."""
    rows = []
    for _ in range(settings.epochs):
        now = losses(agent.policy, batch, settings)
        outside = fraction_outside(now.ratio.detach(), settings.band)
        rows.append((outside, now.kl.item(), now.entropy.item()))
        step(agent.policy_adam, now.loss)
    return rows


def losses(policy: nn.Module, batch: Samples, settings: AblationSettings) -> Losses:
    """Compute the policy's loss, minus objective and entropy bonus."""
    pi = Categorical.of(policy(batch.obs))
    logp = pi.logp(batch.actions)
    r = ratio(logp, batch.logp_old)
    clip = settings.clip_range
    objective = r * batch.adv if clip is None else clipped_objective(r, batch.adv, clip)
    entropy = pi.entropy().mean()
    loss = -objective.mean() - settings.entropy_coefficient * entropy
    return Losses(loss, r, (batch.logp_old - logp).mean(), entropy)


def step(adam: torch.optim.Adam, loss: Tensor) -> None:
    """Take one step down a loss."""
    adam.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    adam.step()


def first_batch(seed: int) -> tuple[Agent, Samples]:
    """Collect the first batch of a seed's run, for which the critic is not trained."""
    with one_thread(), gym.make("CartPole-v1") as env:
        agent = initial_agent(seed)
        env.reset(seed=seed)
        act = sampled(agent.policy, np.random.default_rng(seed))
        batch = samples(agent, episodes(env, act, AblationSettings().episodes))
    return agent, batch

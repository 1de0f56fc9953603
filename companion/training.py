"""Training on a Gymnasium environment: collect, learn, and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray
from torch import nn

from companion import validation
from companion.actor_critic import ActorCritic, actor_critic
from companion.batch import Batch
from companion.ppo import PPO, Diverged, UpdateRecord
from companion.ppo_settings import PPOSettings
from companion.rollout import VectorRollout
from companion.threads import one_thread
from companion.trpo import TRPO, TRPORecord, TRPOSettings

Record = TypeVar("Record", covariant=True)


class Learner(Protocol[Record]):
    """What learns from batches: PPO or TRPO."""

    @property
    def agent(self) -> ActorCritic:
        """The agent that collects."""

    def update(self, batch: Batch, progress: float = 0.0) -> Record:
        """Learn from a batch."""


@dataclass(frozen=True)
class Iteration(Generic[Record]):
    """One batch, and what was learned from it."""

    steps: int  # of all environments together, up to the end of this batch
    episode_returns: tuple[float, ...]  # undiscounted, of the episodes that ended in this batch
    update: Record


def train(
    learner: Learner[Record],
    rollout: VectorRollout,
    *,
    steps: int,
    iterations: int,
    rng: np.random.Generator,
) -> tuple[Iteration[Record], ...]:
    """Collect a batch and learn from it, again and again.

    Args:
        learner: PPO or TRPO.
        rollout: environments.
        steps: of each environment in a batch.
        iterations: batches.
        rng: source of the actions.

    Returns:
        One record for each batch.

    Raises:
        EnvironmentFault: an environment raises, or returns NaN.
        Diverged: the loss is NaN; the message names the step, and what was healthy last.
    """
    act = learner.agent.sampler(rng)
    done: list[Iteration[Record]] = []
    taken = 0
    for k in range(validation.whole("iterations", iterations, 1)):
        batch = rollout.collect(act, steps)
        taken += len(batch)
        try:
            update = learner.update(batch, k / iterations)
        except Diverged as error:
            returns = done[-1].episode_returns if done else ()
            where = f"iteration {k}, after {taken} environment steps"
            raise Diverged(f"{where}: {error}; returns of the batch before: {returns}") from error
        done.append(Iteration(taken, batch.episode_returns, update))
    return tuple(done)


@dataclass(frozen=True)
class TrainingSettings:
    """One training run.

    Raises:
        ValueError: a field is not as its comment says.
    """

    environment: str  # name that Gymnasium knows, such as "CartPole-v1"
    learner: PPOSettings | TRPOSettings  # which learner, and how
    iterations: int  # batches; >= 1
    seed: int = 0  # of networks, environments, actions and shuffles; >= 0

    def __post_init__(self) -> None:
        if not isinstance(self.learner, PPOSettings | TRPOSettings):
            kinds = "PPOSettings or TRPOSettings"
            raise ValueError(f"learner must be {kinds}; got {self.learner!r}")
        for name, at_least in (("iterations", 1), ("seed", 0)):
            object.__setattr__(self, name, validation.whole(name, getattr(self, name), at_least))


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """What came of a training run, batch by batch."""

    settings: TrainingSettings
    steps: NDArray[np.int64]  # (iterations,): of all environments together, up to its end
    episodes: NDArray[np.int64]  # (iterations,): that ended in the batch
    mean_return: NDArray[np.float64]  # (iterations,): of those, undiscounted; NaN if there is none
    kl: NDArray[np.float64]  # (iterations,): mean KL(old, new) of the last epoch, or of the step
    parameters: NDArray[np.float32]  # (P,): of policy and value network at the end


def run(settings: TrainingSettings) -> TrainingRun:
    """Train new networks on an environment by name, with PPO or TRPO as the settings are.

    Args:
        settings: environment, learner and seed.

    Returns:
        TrainingRun. It depends on the settings alone; torch's global generator is left as it was.

    Raises:
        EnvironmentFault, Diverged: as `train` does.
        ValueError: the environment's spaces are of another kind.
    """
    agent, done = train_on(
        settings.environment, settings.learner, iterations=settings.iterations, seed=settings.seed
    )
    returns = [one.episode_returns for one in done]
    updates = [one.update for one in done]
    with torch.no_grad():
        parameters = nn.utils.parameters_to_vector(agent.parameters()).numpy()
    return TrainingRun(
        settings,
        steps=np.array([one.steps for one in done]),
        episodes=np.array([len(some) for some in returns]),
        mean_return=np.array([np.mean(some) if some else np.nan for some in returns]),
        kl=np.array(
            [u.search.kl if isinstance(u, TRPORecord) else u.epochs[-1].kl for u in updates]
        ),
        parameters=parameters,
    )


def train_on(
    environment: str,
    settings: PPOSettings | TRPOSettings,
    *,
    iterations: int,
    seed: int,
    ppo: type[PPO] = PPO,
) -> tuple[ActorCritic, tuple[Iteration[UpdateRecord | TRPORecord], ...]]:
    """Train new networks on an environment by name, with PPO or TRPO as the settings are.

    Args:
        environment: name that Gymnasium knows, such as "CartPole-v1".
        settings: of PPO or TRPO.
        iterations: batches.
        seed: of networks, environments, actions and shuffles.
        ppo: which PPO; that of `companion.compiled.update` is the same to rounding, and faster.

    Returns:
        The agent, and one record for each batch: the same for the same arguments, as torch uses
        one thread here.

    Raises:
        EnvironmentFault, Diverged: as `train` does.
        ValueError: the environment's spaces are of another kind.
    """
    actions, shuffles = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    envs = make_envs(environment, settings.n_envs)
    try:
        spaces = envs.single_observation_space, envs.single_action_space
        rollout = VectorRollout(envs, seed)
        with one_thread():
            agent = actor_critic(*spaces, seed=seed)
            learner: Learner[UpdateRecord | TRPORecord] = (
                ppo(agent, settings, rng=shuffles)
                if isinstance(settings, PPOSettings)
                else TRPO(agent, settings, rng=shuffles)
            )
            return agent, train(
                learner, rollout, steps=settings.steps, iterations=iterations, rng=actions
            )
    finally:
        envs.close()


def make_envs(environment: str, n: int) -> SyncVectorEnv:
    """Make environments that reset themselves in the step that ends an episode.

    Real actions are clipped to the box that the environment allows.
    """

    def one() -> gym.Env[Any, Any]:
        env = gym.make(environment)
        real = isinstance(env.action_space, gym.spaces.Box)
        return gym.wrappers.ClipAction(env) if real else env

    return SyncVectorEnv([one] * n, autoreset_mode=AutoresetMode.SAME_STEP)

"""Benchmark against Stable-Baselines3's PPO and sb3-contrib's TRPO: what `make bench` prints last.

Both sides have one thread of torch, environments stepped one after the other, the same networks,
settings and numbers of steps. They draw other numbers: returns are compared over seeds.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from statistics import mean, stdev
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from companion import ppo
from companion.actor_critic import ActorCritic
from companion.compiled import update
from companion.distribution import Categorical
from companion.ppo_loss import Samples, freeze
from companion.ppo_settings import PPOSettings
from companion.rollout import VectorRollout
from companion.training import make_envs, train_on
from companion.trust_region import trpo_step
from tests.timing import medians, seconds

PEERS = ("stable_baselines3", "sb3_contrib", "Box2D")
INSTALL = '.venv/bin/python -m pip install --constraint requirements.lock --editable ".[bench]"'

PEER = "Stable-Baselines3"
SEEDS = range(5)
LAST = 100  # episodes at the end of a training whose mean return is its final one
# For CartPole those that rl-baselines3-zoo gives, with its 100,000 steps in whole batches.
CARTPOLE = PPOSettings(
    n_envs=8,
    steps=32,
    minibatch=256,
    epochs=20,
    gamma=0.98,
    lam=0.8,
    lr=1e-3,
    anneal_lr=True,
    anneal_clip=True,
    normalize="minibatch",
    value_coefficient=0.5,
    max_grad_norm=0.5,
)
LUNAR_LANDER = PPOSettings(
    n_envs=8,
    steps=256,
    minibatch=256,
    epochs=4,
    gamma=0.999,
    lam=0.98,
    lr=1e-3,
    entropy_coefficient=0.01,
    normalize="minibatch",
    value_coefficient=0.5,
    max_grad_norm=0.5,
)
TASKS = (("CartPole-v1", CARTPOLE, 99_840), ("LunarLander-v3", LUNAR_LANDER, 262_144))

RADIUS, DAMPING, ITERATIONS, HALVINGS = 0.01, 0.1, 10, 10
REPEATS = 41

Train = Callable[[str, PPOSettings, int, int], list[float]]  # task, settings, steps, seed


class Trained(NamedTuple):
    """What one side's trainings took and brought."""

    seconds: float  # of all, processor time
    returns: list[float]  # the final one of each

    def __str__(self) -> str:
        if len(self.returns) == 1:
            return f"{self.returns[0]:.0f}"
        error = stdev(self.returns) / math.sqrt(len(self.returns))
        return f"{mean(self.returns):.0f} +- {error:.0f}"


def main() -> None:
    """Print both tables, or what to install."""
    if missing := [name for name in PEERS if find_spec(name) is None]:
        print(f"not installed: {', '.join(missing)}. To compare with them: {INSTALL}")
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        _print_training()
        theirs, ours, cosine = step()
    finally:
        torch.set_num_threads(threads)
    print(f"\nTRPO step, 2 x 64 tanh, batch 2,048: sb3-contrib {1e3 * theirs:.1f} ms, ", end="")
    print(f"companion {1e3 * ours:.1f} ms: {theirs / ours:.1f} times faster; cosine {cosine:.6f}")


def _print_training() -> None:
    print(f"{'PPO, task':<18}{'version':<28}{'steps/s':>9}{'times SB3':>11}", end="")
    print("   final return (mean +- standard error)")
    for task, settings, steps in TASKS:
        for name, trained in trainings(task, settings, steps).items():
            speed = len(trained.returns) * steps / trained.seconds
            if name == "Stable-Baselines3":
                peer = speed
            print(
                f"{task:<18}{name:<28}{speed:>9,.0f}{speed / peer:>11.2f}   {trained}", flush=True
            )


def trainings(task: str, settings: PPOSettings, steps: int) -> dict[str, Trained]:
    """Train every seed with either side in turn, and one seed with the version to be read."""
    sides: dict[str, Train] = {
        PEER: peer,
        "companion.compiled.update": partial(companion, update.PPO),
        "companion.ppo, one seed": partial(companion, ppo.PPO),
    }
    measured: dict[str, list[tuple[float, float]]] = {}
    for name, train in sides.items():
        measured[name] = []
        # What loads and compiles at the first call.
        train(task, settings, settings.n_envs * settings.steps, 0)
    for seed in SEEDS:
        for name, train in sides.items():
            if seed == SEEDS[0] or "one seed" not in name:
                taken, returns = seconds(partial(train, task, settings, steps, seed))
                measured[name].append((taken, mean(returns[-LAST:])))
    return {
        name: Trained(sum(taken for taken, _ in some), [final for _, final in some])
        for name, some in measured.items()
    }


def companion(
    kind: type[ppo.PPO], task: str, settings: PPOSettings, steps: int, seed: int
) -> list[float]:
    """Train; return the returns of all episodes."""
    iterations = steps // (settings.n_envs * settings.steps)
    _, done = train_on(task, settings, iterations=iterations, seed=seed, ppo=kind)
    return [one for iteration in done for one in iteration.episode_returns]


def peer(task: str, settings: PPOSettings, steps: int, seed: int) -> list[float]:
    """Train with Stable-Baselines3; return the returns of the last 100 episodes."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    def annealed(value: float, does: bool) -> Any:
        return (lambda left: left * value) if does else value

    envs = make_vec_env(task, settings.n_envs, seed=seed)
    learner = PPO(
        "MlpPolicy",
        envs,
        n_steps=settings.steps,
        batch_size=settings.minibatch,
        n_epochs=settings.epochs,
        gamma=settings.gamma,
        gae_lambda=settings.lam,
        learning_rate=annealed(settings.lr, settings.anneal_lr),
        clip_range=annealed(settings.clip_range, settings.anneal_clip),
        ent_coef=settings.entropy_coefficient,
        vf_coef=settings.value_coefficient,
        max_grad_norm=settings.max_grad_norm,
        seed=seed,
        device="cpu",
    )
    learner.learn(steps)
    envs.close()
    return [episode["r"] for episode in learner.ep_info_buffer]


def step() -> tuple[float, float, float]:
    """Time one TRPO step on one batch; return seconds of the peer's, ours, and their cosine."""
    learner = _trpo()
    policy = nn.Sequential(*learner.policy.mlp_extractor.policy_net, learner.policy.action_net)
    start = nn.utils.parameters_to_vector(policy.parameters()).detach().clone()
    batch = _batch(policy, learner)
    cosines: list[float] = []

    def moved(work: Callable[[], Any], _: int) -> Tensor:
        nn.utils.vector_to_parameters(start.clone(), policy.parameters())
        work()
        return nn.utils.parameters_to_vector(policy.parameters()).detach() - start

    def agree(theirs: Tensor, ours: Tensor) -> None:
        cosines.append(float(nn.functional.cosine_similarity(theirs, ours, dim=0)))

    def trpo() -> None:
        trpo_step(
            policy,
            batch.obs,
            batch.actions,
            batch.adv,
            delta=RADIUS,
            damping=DAMPING,
            cg_iterations=ITERATIONS,
            halvings=HALVINGS,
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the mean of no critic's losses
        theirs, ours = medians(partial(moved, learner.train), partial(moved, trpo), REPEATS, agree)
    return theirs, ours, min(cosines)


def _trpo() -> Any:
    """Make the peer's learner, which steps the policy alone."""
    from sb3_contrib import TRPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.logger import Logger

    learner = TRPO(
        "MlpPolicy",
        make_vec_env("LunarLander-v3", LUNAR_LANDER.n_envs, seed=0),
        n_steps=LUNAR_LANDER.steps,
        target_kl=RADIUS,
        cg_damping=DAMPING,
        cg_max_steps=ITERATIONS,
        line_search_shrinking_factor=0.5,
        line_search_max_iter=1 + HALVINGS,
        n_critic_updates=0,
        normalize_advantage=False,
        seed=0,
        device="cpu",
    )
    learner.set_logger(Logger(None, []))
    return learner


def _batch(policy: nn.Module, learner: Any) -> Samples:
    """Collect a batch with the peer's networks, and put it into its buffer as well."""
    value = nn.Sequential(*learner.policy.mlp_extractor.value_net, learner.policy.value_net)
    agent = ActorCritic(policy, value, Categorical)
    envs = make_envs("LunarLander-v3", LUNAR_LANDER.n_envs)
    act = agent.sampler(np.random.default_rng(0))
    batch = freeze(agent, VectorRollout(envs, 0).collect(act, LUNAR_LANDER.steps), PPOSettings())
    envs.close()
    buffer = learner.rollout_buffer
    buffer.observations, buffer.actions = batch.obs.numpy(), batch.actions.numpy()[:, None]
    buffer.advantages, buffer.log_probs = batch.adv.numpy(), batch.logp_old.numpy()
    buffer.values, buffer.returns = batch.v_old.numpy(), batch.target.numpy()
    buffer.full = buffer.generator_ready = True
    return batch


if __name__ == "__main__":
    main()

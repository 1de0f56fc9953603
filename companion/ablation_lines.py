"""The lines that the chapter prints about the ablation, from runs of any version of it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from companion.ablation import (
    ACTIONS,
    AblationRun,
    AblationSettings,
    Samples,
    first_batch,
    losses,
    network,
    step,
)
from companion.rollout import episodes
from companion.sampling import effective_sample_share
from companion.threads import one_thread

SEEDS = tuple(range(8))
STALENESS_SEED, MINIBATCH_SEED, GREEDY_SEED = 2, 1, 2  # of the printed lines
MINIBATCH, MINIBATCH_PASSES = 32, 4
GREEDY_EPISODES = 100
ENDS = 5  # entropy is printed over so many updates at either end


class Minibatches(NamedTuple):
    """Few passes in minibatches beside many full-batch steps, on the same first batch."""

    steps: int  # samples in the batch
    full_batch_passes: int
    minibatch_steps: int
    kl_full_batch: float  # mean of log pi_old - log pi over the whole batch, nats
    kl_minibatches: float


def settings(clip_range: float | None, seeds: Iterable[int] = SEEDS) -> list[AblationSettings]:
    """Return the settings of the printed runs with a clip, or without (None)."""
    return [AblationSettings(seed, clip_range) for seed in seeds]


def stale_ratios(settings: AblationSettings) -> NDArray[np.float32]:
    """Take full-batch steps on the first batch, and see the ratios leave 1 after each.

    Args:
        settings: seed, clip, epochs, lr and entropy coefficient count.

    Returns:
        (epochs, n) ratios of the samples after each step.

    >>> r = stale_ratios(AblationSettings(STALENESS_SEED))
    >>> print(f"{effective_sample_share(r[-1]):.0%} of {r.shape[1]} steps")
    97% of 226 steps
    """
    agent, batch = first_batch(settings.seed)
    everything = [np.arange(len(batch.adv))] * settings.epochs
    return np.stack([r.numpy() for r, _ in _steps(agent.policy, batch, everything, settings)])


def minibatches(settings: AblationSettings) -> Minibatches:
    """Compare full-batch steps with four passes in slices of 32, from the same start.

    Args:
        settings: seed, clip, epochs (of the full batch), lr and entropy coefficient count.

    Returns:
        Minibatches. The four passes share one order of the samples.
    """
    agent, batch = first_batch(settings.seed)
    n = len(batch.adv)
    order = np.random.default_rng(settings.seed).permutation(n)
    slices = np.split(order, range(MINIBATCH, n, MINIBATCH)) * MINIBATCH_PASSES
    everything = [np.arange(n)] * settings.epochs
    (_, full), (_, in_slices) = (
        _steps(agent.policy, batch, parts, settings)[-1] for parts in (everything, slices)
    )
    return Minibatches(n, settings.epochs, len(slices), full, in_slices)


def greedy_returns(
    parameters: NDArray[np.float32], n: int = GREEDY_EPISODES, seed: int = GREEDY_SEED
) -> NDArray[np.float32]:
    """Play episodes with the likeliest action of each observation.

    Args:
        parameters: of a policy, as a run returns them.
        n: episodes.
        seed: of the environment.

    Returns:
        (n,) returns.
    """
    policy = network(ACTIONS)
    nn.utils.vector_to_parameters(torch.from_numpy(parameters), policy.parameters())

    @torch.no_grad()
    def act(obs: NDArray[np.float32]) -> int:
        return int(policy(torch.from_numpy(obs)).argmax())

    with one_thread(), gym.make("CartPole-v1") as env:
        env.reset(seed=seed)
        returns = episodes(env, act, n).episode_returns
    return np.array(returns, np.float32)


def printed_lines(clipped: Sequence[AblationRun], unclipped: Sequence[AblationRun]) -> Any:
    """Write every line of the ablation as the chapter prints it (`ablation.torch`).

    Args:
        clipped, unclipped: one run of each seed, in the order of the seeds.

    Returns:
        Name of each line -> text, number, or one of them for each of the two.
    """
    both = {"clipped": clipped, "no clip": unclipped}
    stale = {
        name: stale_ratios(replace(runs[0].settings, seed=STALENESS_SEED))
        for name, runs in both.items()
    }
    counted = minibatches(replace(clipped[0].settings, seed=MINIBATCH_SEED))
    entropy = np.stack([one.entropy for one in clipped])
    dead = {name: [one.settings.seed for one in runs if one.dead] for name, runs in both.items()}
    return {
        "clipped_dead": f"{len(dead['clipped'])} of {len(clipped)}",
        "unclipped_dead": f"{len(dead['no clip'])} of {len(unclipped)}",
        "outside_band_all_epochs": {
            name: f"{np.mean([one.outside for one in runs]):.1%}" for name, runs in both.items()
        },
        "outside_band_last_epoch": {
            name: f"{np.mean([one.outside[:, -1] for one in runs]):.1%}"
            for name, runs in both.items()
        },
        "entropy_first_five": f"{entropy[:, :ENDS].mean():.2f}",
        "entropy_last_five": f"{entropy[:, -ENDS:].mean():.2f}",
        "ess_after_20_epochs": {
            name: f"{effective_sample_share(ratios[-1]):.0%}" for name, ratios in stale.items()
        },
        "batch_steps": stale["clipped"].shape[1],
        "greedy_return": f"{greedy_returns(clipped[0].parameters).mean():.0f}",
        "unclipped_dead_seeds": dead["no clip"],
        "minibatch": counted._asdict()
        | {name: f"{getattr(counted, name):.3f}" for name in ("kl_full_batch", "kl_minibatches")},
    }


def _steps(
    start: nn.Module,
    batch: Samples,
    slices: Iterable[NDArray[np.int64]],
    settings: AblationSettings,
) -> list[tuple[Tensor, float]]:
    """Take a twin's step on each slice; return ratios and KL on the whole batch after each."""
    policy = copy.deepcopy(start)
    adam = torch.optim.Adam(policy.parameters(), settings.lr)
    after = []
    with one_thread():
        for index in slices:
            part = Samples(*(tensor[torch.from_numpy(index)] for tensor in batch))
            step(adam, losses(policy, part, settings).loss)
            with torch.no_grad():
                now = losses(policy, batch, settings)
            after.append((now.ratio, now.kl.item()))
    return after

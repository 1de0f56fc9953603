"""The experiment of `companion.bandit`, compiled: torch draws the problem, kernels train on it."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from companion import bandit
from companion.bandit import ACTIONS, FEATURES, HIDDEN, SAMPLES, BanditSettings, EpochRecord
from companion.compiled.jit import kernel
from companion.compiled.network import Floats, Network, Scalar, adam, backward, forward, network_of
from companion.objective import adapt_beta, band, fraction_outside, ratio

SEEDS_KEPT = 4  # two megabytes each
TRAININGS_KEPT = 16  # a tenth of a megabyte each
TEST_BLOCK = 1000  # contexts that go through the network together, to stay in the cache


class _Batch(NamedTuple):
    contexts: Floats  # (d, N)
    actions: NDArray[np.int64]  # (N,)
    adv: Floats  # (N,)
    logp_old: Floats  # (A, N)
    p_old: Floats  # (A, N)


class _Problem(NamedTuple):
    batch: _Batch
    test_contexts: Floats  # (blocks, d, TEST_BLOCK)
    test_means: Floats  # (blocks, A, TEST_BLOCK)
    old_return: float


class _Objective(NamedTuple):
    low: Scalar  # edges of the band; 0 and infinity clip nothing
    high: Scalar
    beta: Scalar  # 0 penalizes nothing


class _Epoch(NamedTuple):
    kl: float
    ratios: Floats  # (N,)
    improvement: float
    beta: float


def run(settings: BanditSettings) -> tuple[EpochRecord, ...]:
    """Do what `companion.bandit.run` does, to rounding in float32.

    maximize the mean of r A, min(r A, clip(r) A) or r A - beta KL(old, new)  (chapter, section 6)

    Args, Returns and Raises: as there.

    >>> first = run(BanditSettings(method="clip", epochs=1))[0]
    >>> f"{first.kl:.3f} {first.outside:.3f} {first.largest_ratio:.3f} {first.improvement:.3f}"
    '0.026 0.373 1.867 0.124'
    """
    low, high = settings.clip_range, settings.clip_range_high
    if settings.method != "clip":  # then the band is only counted with
        settings = replace(settings, clip_range=1.0, clip_range_high=None)
    return tuple(
        EpochRecord(
            epoch=epoch,
            kl=kl,
            outside=fraction_outside(ratios, low, high),
            largest_ratio=float(ratios.max()),
            improvement=improvement,
            beta=beta,
        )
        for epoch, (kl, ratios, improvement, beta) in enumerate(_training(settings), start=1)
    )


@lru_cache(TRAININGS_KEPT)
def _training(settings: BanditSettings) -> tuple[_Epoch, ...]:
    problem = _problem(settings.seed)
    parameters, shuffles = _draws(settings.seed, settings.epochs)
    state = np.stack([parameters, *np.zeros((3, parameters.size), np.float32)])
    policy, slopes = (network_of(row, FEATURES, HIDDEN, ACTIONS) for row in state[:2])
    edges = band(settings.clip_range, settings.clip_range_high)
    edges = edges if settings.method == "clip" else (0.0, math.inf)
    beta = settings.beta if settings.method in ("kl", "adaptive kl") else 0.0
    step = 0
    epochs = []
    for order in shuffles:
        objective = _Objective(*map(np.float32, (*edges, beta)))
        for start in range(0, SAMPLES, settings.minibatch):
            index = order[start : start + settings.minibatch]
            step += 1
            _set_slopes(policy, problem.batch, objective, index, slopes)
            adam(state, step, settings.lr)
        epochs.append(_measure(policy, problem, beta))
        if settings.method == "adaptive kl":
            beta = adapt_beta(beta, epochs[-1].kl, settings.target_kl)
    return tuple(epochs)


def _set_slopes(
    policy: Network, batch: _Batch, objective: _Objective, index: NDArray[np.int64], slopes: Network
) -> None:
    contexts = batch.contexts.take(index, axis=1)
    hidden, outer = forward(policy, contexts)
    _log_softmax(outer)
    _loss_slopes(objective, batch, index, outer)
    backward(policy, contexts, hidden, outer, slopes)


def _measure(policy: Network, problem: _Problem, beta: float) -> _Epoch:
    batch = problem.batch
    _, logp = forward(policy, batch.contexts)
    _log_softmax(logp)
    taken = batch.actions, np.arange(SAMPLES)
    ratios = ratio(logp[taken], batch.logp_old[taken])
    kl = (batch.p_old * (batch.logp_old - logp)).sum(axis=0).mean()
    rewards = [
        _mean_reward(forward(policy, contexts)[1], means)
        for contexts, means in zip(problem.test_contexts, problem.test_means, strict=True)
    ]
    return _Epoch(float(kl), ratios, float(np.mean(rewards)) - problem.old_return, beta)


@lru_cache(SEEDS_KEPT)
def _problem(seed: int) -> _Problem:
    with torch.random.fork_rng(devices=[]):
        made = bandit.make_bandit(seed)
    batch = _Batch(
        _columns(made.contexts),
        made.actions.numpy(),
        made.adv.numpy(),
        _columns(made.logp_old),
        _columns(made.logp_old.exp()),
    )
    contexts = made.test_contexts.reshape(-1, TEST_BLOCK, FEATURES)
    means = made.test_means.reshape(-1, TEST_BLOCK, ACTIONS)
    return _Problem(batch, _columns(contexts), _columns(means), made.old_return)


def _columns(rows: Tensor) -> Floats:
    columns: Floats = rows.mT.contiguous().numpy()
    return columns


@lru_cache(SEEDS_KEPT)
def _draws(seed: int, epochs: int) -> tuple[Floats, NDArray[np.int64]]:
    """Return the first policy's parameters (P,) and the shuffle of each epoch (epochs, N)."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        policy = bandit.initial_policy(seed)
        shuffles = torch.stack([torch.randperm(SAMPLES) for _ in range(epochs)])
        parameters = torch.nn.utils.parameters_to_vector(policy.parameters())
    return parameters.numpy(), shuffles.numpy()


@kernel
def _log_softmax(logits: Floats) -> None:
    """Replace logits (A, n) by log-probabilities."""
    for i in range(logits.shape[1]):
        largest = logits[0, i]
        for a in range(1, len(logits)):
            largest = max(largest, logits[a, i])
        total = np.float32(0)
        for a in range(len(logits)):
            total += math.exp(logits[a, i] - largest)
        for a in range(len(logits)):
            logits[a, i] -= largest + math.log(total)


@kernel
def _loss_slopes(
    objective: _Objective, batch: _Batch, index: NDArray[np.int64], logp: Floats
) -> None:
    """Replace log-probabilities (A, n) by the slopes of minus the mean objective in the logits.

    d r / d logit_a = r (1[a taken] - p_a),  d KL(old, new) / d logit_a = p_a - p_old_a
    """
    for k in range(len(index)):
        i = index[k]
        taken = batch.actions[i]
        adv = batch.adv[i]
        r = math.exp(logp[taken, k] - batch.logp_old[taken, i])
        clipped = r > objective.high if adv > 0 else r < objective.low
        gain = 0.0 if clipped else r * adv
        for a in range(len(logp)):
            p = math.exp(logp[a, k])
            slope = gain * ((a == taken) - p) - objective.beta * (p - batch.p_old[a, i])
            logp[a, k] = -slope / len(index)


@kernel
def _mean_reward(logits: Floats, means: Floats) -> float:
    """Return the mean over contexts of sum_a pi(a) means(a), both (A, n)."""
    total, n = 0.0, len(logits[0])
    for i in range(n):
        largest = logits[0, i]
        for a in range(1, len(logits)):
            largest = max(largest, logits[a, i])
        reward, mass = np.float32(0), np.float32(0)
        for a in range(len(logits)):
            weight = math.exp(logits[a, i] - largest)
            reward += weight * means[a, i]
            mass += weight
        total += float(reward / mass)
    return total / n

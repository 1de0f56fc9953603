"""The experiment of `companion.ablation`, compiled, many agents at once.

The networks start as there; the draws of actions and of first states are its own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import nn

from companion import ablation
from companion.ablation import HIDDEN, OBSERVATIONS, AblationRun, AblationSettings, Agent
from companion.compiled.agent import Floats, Rules, train

INNER = HIDDEN * (OBSERVATIONS + 1)  # parameters of the hidden layer


def run(settings: AblationSettings) -> AblationRun:
    """Do what `companion.ablation.run` does, from the same networks, with draws of its own.

    maximize mean min(r A, clip(r, 1 - eps, 1 + eps) A) + 0.01 entropy  (chapter, section 8)

    Args:
        settings: as there.

    Returns:
        AblationRun: another sample of what the reference may give; the same for the same settings.

    Raises:
        FloatingPointError: the policy is lost (NaN); the message says in which update.
    """
    return _run(settings, ablation.initial_agent(settings.seed))


def run_all(settings: Iterable[AblationSettings], threads: int | None = None) -> list[AblationRun]:
    """Train many agents side by side, one in each thread at a time.

    Args:
        settings: one for each agent.
        threads: at a time; None for one per core.

    Returns:
        What `run` returns for each, in their order, whatever the number of threads.

    Raises:
        FloatingPointError: as `run` does.
    """
    settings = list(settings)
    # Torch's initialization draws from the one generator of all threads: not in the threads.
    agents = [ablation.initial_agent(one.seed) for one in settings]
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        return list(pool.map(_run, settings, agents))


def _run(settings: AblationSettings, agent: Agent) -> AblationRun:
    first = _parameters(agent.policy)
    actor, critic = _state(first), _state(_parameters(agent.value))
    returns = np.zeros((settings.updates, settings.episodes), np.float32)
    rows = np.zeros((settings.updates, settings.epochs, 3), np.float32)
    train(actor, critic, _rules(settings), np.random.default_rng(settings.seed), returns, rows)
    lost = np.flatnonzero(~np.isfinite(rows).all(axis=(1, 2)))
    if lost.size:
        healthy = rows[lost[0] - 1, -1].tolist() if lost[0] else "none"
        raise FloatingPointError(
            f"the policy is NaN in update {lost[0]} of {settings}; last healthy outside, KL and "
            f"entropy: {healthy}"
        )
    outside, kl, entropy = np.ascontiguousarray(np.moveaxis(rows, -1, 0))
    return AblationRun(settings, returns, outside, kl, entropy, _moved(first, actor[0]))


def _rules(settings: AblationSettings) -> Rules:
    clip = math.inf if settings.clip_range is None else settings.clip_range
    return Rules(
        low=np.float32(1 - clip),
        high=np.float32(1 + clip),
        band=np.float32(settings.band),
        entropy_coefficient=np.float32(settings.entropy_coefficient),
        lr=settings.lr,
        gamma=np.float32(ablation.GAMMA),
        decay=np.float32(ablation.GAMMA * ablation.LAM),
        critic_steps=ablation.CRITIC_STEPS,
    )


def _parameters(network: nn.Module) -> Floats:
    with torch.no_grad():
        parameters: Floats = nn.utils.parameters_to_vector(network.parameters()).numpy()
    return parameters


def _state(parameters: Floats) -> Floats:
    """Return rows of parameters, slopes and Adam's two averages, (4, INNER + H + 1).

    Two logits count by their difference alone. Their slopes are opposite, and so are Adam's steps.
    """
    outputs = parameters[INNER:]
    if len(outputs) > HIDDEN + 1:
        weight, bias = outputs[: 2 * HIDDEN].reshape(2, HIDDEN), outputs[2 * HIDDEN :]
        outputs = np.append(weight[1] - weight[0], bias[1] - bias[0])
    start = np.append(parameters[:INNER], outputs)
    return np.stack([start, *np.zeros((3, start.size), np.float32)])


def _moved(first: Floats, end: Floats) -> Floats:
    """Return all parameters of a policy that started at `first`, given its state at the end."""
    half = (end - _state(first)[0])[INNER:] / 2
    weight, bias = half[:-1], half[-1:]
    outputs = first[INNER:] + np.concatenate([-weight, weight, -bias, bias])
    return np.append(end[:INNER], outputs)

"""The mirror step, its limits, and runs on a bandit, and the cases of exercise 20.7."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from companion.exercises import own
from companion.exercises.cases import N_ACTIONS, action_probabilities, as_lists
from companion.exercises.own import uniform
from companion.policy import FloatArray, softmax

STUCK = 0.99  # the start's probability of the worst action, on the student's own bandit
ETA = 0.5
MOST_UPDATES = 2_000


def steps(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw policies, action values and step sizes."""
    return [
        as_lists(
            {
                "pi": action_probabilities(rng, n),
                "q": np.round(3 * uniform(rng, (n, N_ACTIONS)), 1),
                "eta": eta,
            }
        )
        for n, eta in ((2, 0.3), (3, 0.6), (4, 2.0))
    ]


def states(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw a policy's probabilities and action values in one state, no two of them alike."""
    cases = []
    for n_actions in (3, 4, 5):
        pi = own.hundredths(0.1 + rng.random(n_actions) ** 2)
        q = 0.7 * rng.permutation(n_actions) + 0.2 * uniform(rng, n_actions) - 1
        cases.append(as_lists({"pi": pi, "q": np.round(q, 2)}))
    return cases


def own_bandit(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the rewards of the student's own bandit and a step size."""
    numbers = own.generator(student, "bandit")
    reward = np.round([0.0, 0.4, 1.0] + 0.15 * uniform(numbers, 3), 2)
    return [{"reward": numbers.permutation(reward).tolist(), "stuck": STUCK, "eta": ETA}]


def mirror_step(pi: FloatArray, q: FloatArray, eta: float) -> FloatArray:
    """Return pi exp(eta q) / Z in each state."""
    return softmax(np.log(pi) + eta * q)


def over_sum(weights: FloatArray) -> FloatArray:
    """Return weights over their sum, state by state."""
    pi: FloatArray = weights / weights.sum(axis=-1, keepdims=True)
    return pi


def advantages(pi: FloatArray, q: FloatArray) -> FloatArray:
    """Return q minus its mean under pi."""
    adv: FloatArray = q - (pi * q).sum(axis=-1, keepdims=True)
    return adv


def limits(
    pi: FloatArray,
    q: FloatArray,
    *,
    weights: Callable[[Any], Any] = lambda pi: pi,
    half: float = 0.5,
    second_moment: bool = False,
    rival: int = -2,
    half_gain: float = 1.0,
) -> FloatArray:
    """Return the limits of gain / eta, of KL / eta^2, and of -log(1 - best) / eta."""
    p = weights(pi)
    variance = p @ q**2 - (0 if second_moment else (p @ q) ** 2)
    ordered = np.sort(q)
    return np.array([half_gain * variance, half * variance, ordered[-1] - ordered[rival]])


def poor_start(reward: FloatArray, stuck: float) -> FloatArray:
    """Return the policy that takes the worst arm with this probability, the others alike."""
    pi = np.full_like(reward, (1 - stuck) / (len(reward) - 1))
    pi[reward.argmin()] = stuck
    return pi


def rich_start(reward: FloatArray, stuck: float) -> FloatArray:
    """Return the policy that takes the best arm with this probability, the others alike."""
    return poor_start(-reward, stuck)


def uniform_start(reward: FloatArray, stuck: float) -> FloatArray:
    """Return the policy that takes each arm alike."""
    return np.full_like(reward, 1 / len(reward))


def natural(pi: FloatArray, reward: FloatArray) -> FloatArray:
    """Return the direction of the mirror step in the logits, up to a constant."""
    return reward


def gradient(pi: FloatArray, reward: FloatArray) -> FloatArray:
    """Return the gradient of the expected reward in the logits."""
    weighted: FloatArray = pi * advantages(pi, reward)
    return weighted


def updates_needed(
    reward: FloatArray, start: FloatArray, eta: float, direction: Callable[..., Any]
) -> int:
    """Return after how many updates of the logits the best arm has the majority."""
    logits, best = np.log(start), reward.argmax()
    for count in range(MOST_UPDATES):
        pi = np.exp(logits - logits.max())
        pi /= pi.sum()
        if pi[best] > 0.5:
            return count
        logits = logits + eta * direction(pi, reward)
    return MOST_UPDATES


def escapes(
    reward: FloatArray,
    stuck: float,
    eta: float,
    *,
    start: Callable[..., Any] = poor_start,
    directions: tuple[Callable[..., Any], Callable[..., Any]] = (natural, gradient),
    counted_from: int = 0,
) -> FloatArray:
    """Return the updates that mirror descent and gradient ascent need, and the slope at the start.

    That is the gradient's component for the best arm.
    """
    pi = start(reward, stuck)
    counts = [updates_needed(reward, pi, eta, d) + counted_from for d in directions]
    return np.array([*counts, directions[1](pi, reward)[reward.argmax()]])

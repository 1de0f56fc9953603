"""What a policy can reach inside an asymmetric band, and the cases of further exercise 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from companion.exercises import own
from companion.exercises.cases import as_lists

LOW, HIGH = 0.2, 0.28  # the band on the student's own policy
TARGET = 0.5
BANDS = ((0.2, 0.28), (0.3, 0.15), (0.1, 0.4))


def bands(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw a policy in one state and a band each; in every second one, one action is common."""
    policies = [own.draw_probabilities(rng), own.hundredths(0.1 + rng.random(4) ** 2)]
    policies.append(own.hundredths(np.append(0.03 + 0.05 * rng.random(3), rng.random() + 1)))
    return [
        as_lists({"p": p, "low": low, "high": high})
        for p, (low, high) in zip(policies, BANDS, strict=True)
    ]


def journeys(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw probabilities and targets that lie well between two whole numbers of batches."""
    cases = []
    for low, high in BANDS:
        p = np.round(np.append(0.005 + 0.05 * rng.random(3), 0.4 + 0.5 * rng.random(3)), 3)
        batches = rng.integers([3, 5, 7, 1, 4, 6]) + 2 - (0.2 + 0.6 * rng.random(6))
        rates = np.log(np.where(p < 0.1, 1 + high, 1 - low))
        target = np.round(p * np.exp(rates * batches), 5)
        cases.append(as_lists({"p": p, "target": target, "low": low, "high": high}))
    return cases


def own_policy(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the student's own policy in one state, the band, and a probability to be reached."""
    case = {"p": own.own_probabilities(student), "low": LOW, "high": HIGH, "target": TARGET}
    return [as_lists(case)]


def reachable(p: Any, low: float, high: float) -> Any:
    """Return the smallest and the largest probability of each action before its gradient dies."""
    return np.array([(1 - low) * p, np.minimum((1 + high) * p, 1)])


def reachable_together(p: Any, low: float, high: float) -> Any:
    """Return the same where the ratios of all actions are to stay in the band."""
    smallest, largest = 1 - (1 + high) * (1 - p), 1 - (1 - low) * (1 - p)
    return np.array([np.maximum((1 - low) * p, smallest), np.minimum((1 + high) * p, largest)])


def moved_logit(p: Any, change: float) -> Any:
    """Return each action's probability after its own logit has moved."""
    return p * np.exp(change) / (1 - p + p * np.exp(change))


def normalized_alone(p: Any, low: float, high: float) -> Any:
    """Return the edges of one action over a sum in which the others have stayed."""
    return np.array([(1 - low) * p / (1 - low * p), (1 + high) * p / (1 + high * p)])


def normalized_edges(p: Any, low: float, high: float) -> Any:
    """Return the edges of one action over a sum in which the others are at their other edge."""
    down, up = (1 - low) * p, (1 + high) * p
    return np.array([down / (down + (1 + high) * (1 - p)), up / (up + (1 - low) * (1 - p))])


def one_gives_way(p: Any, low: float, high: float) -> Any:
    """Return what can be reached if only the most common other action moves."""
    others = np.where(np.eye(len(p), dtype=bool), 0, p).max(axis=1)
    down, up = np.minimum(low * p, high * others), np.minimum(high * p, low * others)
    return np.array([p - down, p + up])


def looser(p: Any, low: float, high: float) -> Any:
    """Return the further of the two bounds on each side."""
    smallest, largest = 1 - (1 + high) * (1 - p), 1 - (1 - low) * (1 - p)
    return np.array([np.minimum((1 - low) * p, smallest), np.maximum((1 + high) * p, largest)])


def exact_batches(p: Any, target: Any, low: float, high: float) -> Any:
    """Return how often a ratio at the edge must be multiplied, not rounded."""
    return np.log(target / p) / np.log(np.where(target > p, 1 + high, 1 - low))


def batches_needed(
    p: Any, target: Any, low: float, high: float, *, rounded: Callable[[Any], Any] = np.ceil
) -> Any:
    """Return the number of batches in which an action gets from p to its target."""
    return rounded(exact_batches(p, target, low, high))


def added_batches(p: Any, target: Any, low: float, high: float) -> Any:
    """Return the number of batches if each moved the probability by as much as the first."""
    return np.ceil((target - p) / (p * np.where(target > p, high, -low)))


def edges_as_logs(p: Any, target: Any, low: float, high: float) -> Any:
    """Return the number of batches if each moved the log probability by the range."""
    return np.ceil(np.log(target / p) / np.where(target > p, high, -low))


def band_numbers(
    p: Any,
    low: float,
    high: float,
    target: float,
    *,
    together: Callable[..., Any] = reachable_together,
    batches: Callable[..., Any] = batches_needed,
    picks: tuple[Callable[[Any], Any], Callable[[Any], Any]] = (np.argmin, np.argmax),
) -> Any:
    """Return where the rarest and the most common action can get, in percent, and batches."""
    rare, common = (pick(p) for pick in picks)
    smallest, largest = together(p, low, high)[:, common]
    counts = [batches(p[rare], target, low, upper) for upper in (high, low)]
    alone = reachable(p, low, high)[1, rare]
    return np.array([100 * alone, 100 * largest, 100 * smallest, *counts])

"""The band of the ratio as a bound on a logit, and the cases of further exercise 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from companion.exercises import own
from companion.exercises.bands import HIGH, LOW
from companion.exercises.cases import as_lists

LR = 0.01  # of the gradient steps on the student's own policy
MOST_STEPS = 2_000


def moves(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw rare and common actions, none that can just reach its edge, and a band each."""
    cases = []
    for low, high, most in ((0.2, 0.28, 4.0), (0.4, 0.15, 3.0), (0.3, 0.9, 5.0)):
        bounded = (0.02 + 0.95 * rng.random(4)) / (1 + high)
        unbounded = 1 - (1 - 1 / (1 + high)) * np.array([0.85, 0.1]) * (0.5 + 0.5 * rng.random(2))
        p = np.round(np.append(bounded, unbounded), 4)
        cases.append(as_lists({"p": p, "low": low, "high": high, "most": most}))
    return cases


def probabilities(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw probabilities of rare and common actions."""
    shares = (np.arange(n) + rng.random(n) for n in (4, 5, 6))
    return [{"p": np.round(0.03 + 0.9 * x / len(x), 3).tolist()} for x in shares]


def own_policy(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the student's own policy in one state, the band, and a step size."""
    return [as_lists({"p": own.own_probabilities(student), "low": LOW, "high": HIGH, "lr": LR})]


def own_factors(p: Any, low: float, high: float) -> Any:
    """Return exp(change) of an action's logit at which its own ratio is at the edges."""
    with np.errstate(divide="ignore"):
        lower, upper = (edge * (1 - p) / (1 - edge * p) for edge in (1 - low, 1 + high))
    return np.array([lower, np.where((1 + high) * p < 1, upper, np.inf)])


def others_factors(p: Any, low: float, high: float) -> Any:
    """Return exp(change) of an action's logit at which the others' ratios are at the edges."""
    return np.array([np.maximum(1 - high / ((1 + high) * p), 0), 1 + low / ((1 - low) * p)])


def ranges_interchanged(p: Any, low: float, high: float) -> Any:
    """Return the factors with the band's ranges interchanged."""
    return others_factors(p, high, low)


def upside_down(p: Any, low: float, high: float) -> Any:
    """Return the others' factors if their ratio were old over new."""
    return np.array([np.maximum(1 - low / p, 0), 1 + high / p])


def not_turned_round(p: Any, low: float, high: float) -> Any:
    """Return the others' factors as if their joint logit moved, and in the same direction."""
    return own_factors(1 - p, low, high)


def cut(factors: Any, most: float) -> Any:
    """Return the changes that belong to factors, none of more than `most`."""
    with np.errstate(divide="ignore"):
        return np.clip(np.log(factors), -most, most)


def own_interval(p: Any, low: float, high: float, most: float) -> Any:
    """Return between which changes of its logit an action's own ratio stays in the band."""
    return cut(own_factors(p, low, high), most)


def tighter(one: Any, two: Any) -> Any:
    """Return what two intervals share."""
    return np.array([np.maximum(one[0], two[0]), np.minimum(one[1], two[1])])


def looser(one: Any, two: Any) -> Any:
    """Return the interval from the lower of the lower ends to the higher of the higher ones."""
    return np.array([np.minimum(one[0], two[0]), np.maximum(one[1], two[1])])


def whole_interval(
    p: Any,
    low: float,
    high: float,
    most: float,
    *,
    others: Callable[..., Any] = others_factors,
    combined: Callable[[Any, Any], Any] = tighter,
) -> Any:
    """Return between which changes of one logit the ratios of all actions stay in the band."""
    return cut(combined(own_factors(p, low, high), others(p, low, high)), most)


def same_on_both_sides(p: Any, low: float, high: float, most: float) -> Any:
    """Return the largest symmetric interval in which all ratios stay in the band."""
    size = np.abs(whole_interval(p, low, high, most)).min(axis=0)
    return np.array([-size, size])


def limits(p: Any) -> Any:
    """Return the limits of highest change / eps and of (highest + lowest change) / eps^2."""
    return np.array([1 / (1 - p), (2 * p - 1) / (1 - p) ** 2])


def logit(p: Any) -> Any:
    """Return the log odds."""
    return np.log(p / (1 - p))


def probability_changes(p: Any, low: float, high: float) -> Any:
    """Return the first three numbers as changes of probabilities."""
    rare, common = p.min(), p.max()
    return np.array([high * rare, -low * common, low * (1 - common)])


def log_edges(p: Any, low: float, high: float) -> Any:
    """Return the first three numbers as logarithms of the band's edges."""
    return np.array([np.log1p(high), np.log1p(-low), -np.log1p(-low)])


def interchanged(p: Any, low: float, high: float) -> Any:
    """Return the first three numbers with the rarest and the most common action interchanged."""
    others = others_factors(p.max(), low, high)[1]
    return np.log([others, *own_factors(p.min(), low, high)])


def ratio_slope(ratio: float, p: float) -> float:
    """Return the derivative of the ratio in the logit."""
    return ratio * (1 - p)


def log_slope(ratio: float, p: float) -> float:
    """Return the derivative of the log probability in the logit."""
    return 1 - p


def steps_needed(p: float, change: float, lr: float, slope: Callable[..., float]) -> int:
    """Return after how many gradient steps a logit has changed by more than this."""
    moved = 0.0
    for count in range(MOST_STEPS):
        if moved > change:
            return count
        new = p * np.exp(moved) / (1 - p + p * np.exp(moved))
        moved += lr * slope(new / p, new)
    return MOST_STEPS


def logit_numbers(
    p: Any,
    low: float,
    high: float,
    lr: float,
    *,
    slope: Callable[..., float] = ratio_slope,
    others: Callable[..., Any] = others_factors,
    steps: Callable[[int, int], float] = lambda rare, common: common / rare,
) -> Any:
    """Return how far the rare and the common action's logits may go, and the steps' quotient."""
    rare, common = p.min(), p.max()
    up = float(np.log(own_factors(rare, low, high)[1]))
    down = float(np.log(own_factors(common, low, high)[0]))
    shared = float(np.log(others(common, low, high)[1]))
    counts = steps_needed(rare, up, lr, slope), steps_needed(common, shared, lr, slope)
    return np.array([up, down, shared, steps(*counts)])


def with_changes(changes: Callable[..., Any], p: Any, low: float, high: float, lr: float) -> Any:
    """Return the numbers with other changes of the logits, and the right quotient."""
    return np.append(changes(p, low, high), logit_numbers(p, low, high, lr)[3])

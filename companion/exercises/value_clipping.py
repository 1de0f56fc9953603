"""The clipped value loss, its derivative, and fits with it, and the cases of exercise 20.8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from companion.exercises import own
from companion.exercises.cases import as_lists
from companion.exercises.own import uniform
from companion.mdp import evaluate
from companion.policy import FloatArray

N_SAMPLES = 12
N_STATES = 6
MOST_ITERATIONS = 100
# On the student's own MDP.
CLIP_RANGE = 0.2
RATE = 0.04
STEPS = 50


def samples(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw new and old values and targets, none at a kink of the loss."""
    cases = []
    for clip_range in (0.1, 0.2, 0.3):
        old = np.round(2 + uniform(rng, N_SAMPLES), 1)
        v = old + np.round(3 * clip_range * uniform(rng, N_SAMPLES), 1) + 0.03
        target = old + np.round(5 * clip_range * uniform(rng, N_SAMPLES), 1) + 0.007
        cases.append(rounded({"v": v, "v_old": old, "target": target, "clip_range": clip_range}))
    return cases


def fits(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw old values and targets, near and far, and a step size and number of steps."""
    cases = []
    for clip_range, lr, steps in ((0.2, 0.1, 5), (0.1, 0.05, 10), (0.3, 0.2, 4)):
        old = np.round(2 * uniform(rng, N_STATES), 1)
        reach = clip_range * np.linspace(0.5, 6.0, N_STATES)
        target = old + rng.permutation(reach) * rng.choice([-1, 1], N_STATES)
        case = {"v_old": old, "target": target, "clip_range": clip_range}
        cases.append(rounded(case) | {"lr": lr, "steps": steps})
    return cases


def rounded(arrays: dict[str, Any]) -> dict[str, Any]:
    """Return a case with arrays in thousandths, as lists."""
    return {key: np.round(value, 3).tolist() for key, value in arrays.items()}


def own_values(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the values of the student's own two policies."""
    mdp = own.own_mdp(student)
    v_old, target = (evaluate(mdp, pi).v for pi in own.own_policies(student))
    rest = {"clip_range": CLIP_RANGE, "lr": RATE, "steps": STEPS}
    return [as_lists({"v_old": v_old, "target": target}) | rest]


def clipped_value(v: Any, v_old: Any, clip_range: Any) -> Any:
    """Return the new value, held to a band around the old one."""
    return v_old + np.clip(v - v_old, -clip_range, clip_range)


def clipped_value_loss(
    v: Any,
    v_old: Any,
    target: Any,
    clip_range: float,
    *,
    held: Callable[..., Any] = clipped_value,
    worse: Callable[..., Any] = np.maximum,
) -> Any:
    """Return max((v - G)^2, (held v - G)^2), or a variant of it."""
    return worse((v - target) ** 2, (held(v, v_old, clip_range) - target) ** 2)


def squared_error(v: Any, v_old: Any, target: Any, clip_range: float) -> Any:
    """Return the loss without a clip."""
    return (v - target) ** 2


def outside(v: Any, v_old: Any, clip_range: Any) -> Any:
    """Say of each new value whether it has left the band."""
    return np.abs(v - v_old) > clip_range


def dead(v: Any, v_old: Any, target: Any, clip_range: Any) -> Any:
    """Say of each new value whether it has left the band and is nearer to the target than it."""
    edge = clipped_value(v, v_old, clip_range)
    return outside(v, v_old, clip_range) & (np.abs(v - target) < np.abs(edge - target))


def derivative(v: Any, v_old: Any, target: Any, clip_range: Any) -> Any:
    """Return 0 where it is dead, else 2 (v - G)."""
    return np.where(dead(v, v_old, target, clip_range), 0.0, 2 * (v - target))


def plain_derivative(v: Any, v_old: Any, target: Any, clip_range: Any) -> Any:
    """Return 2 (v - G)."""
    return 2 * (v - target)


def identity_derivative(v: Any, v_old: Any, target: Any, clip_range: Any) -> Any:
    """Return the derivative as if that of the clip were 1 everywhere."""
    lost = dead(v, v_old, target, clip_range)
    return 2 * (np.where(lost, clipped_value(v, v_old, clip_range), v) - target)


def halved_derivative(v: Any, v_old: Any, target: Any, clip_range: Any) -> Any:
    """Return the derivative of half the loss."""
    return derivative(v, v_old, target, clip_range) / 2


def relative_band(v: Any, v_old: Any, clip_range: float) -> Any:
    """Return the new value, held to a band of ratios to the old one."""
    return np.clip(v, (1 - clip_range) * v_old, (1 + clip_range) * v_old)


def fit(
    v_old: Any,
    target: Any,
    clip_range: Any,
    lr: float,
    steps: int,
    *,
    slope: Callable[..., Any] = derivative,
    projected: bool = False,
) -> Any:
    """Return the values after gradient steps from the old ones, or after those of a variant."""
    v = v_old
    for _ in range(steps):
        gradient = slope(v, v_old, target, clip_range)
        if not gradient.any():  # nothing moves any more, which is soon where all are clipped
            break
        v = v - lr * gradient
        v = clipped_value(v, v_old, clip_range) if projected else v
    return v


def root_mean_square(error: Any) -> Any:
    """Return sqrt(mean(error^2))."""
    return np.sqrt(np.mean(error**2))


def fit_numbers(
    v_old: Any,
    target: Any,
    clip_range: Any,
    lr: float,
    steps: int,
    *,
    size: Callable[[Any], Any] = root_mean_square,
    counted_from: int = 1,
    **c: Any,
) -> FloatArray:
    """Return the errors before, after a clipped and a plain fit, and the iterations needed.

    Each iteration is a clipped fit around the values of the one before; needed are so many that
    all values are within clip_range of their targets.
    """
    rest = {"target": target, "lr": lr, "steps": steps}
    plain = fit(v_old, clip_range=np.inf, **rest, **c)
    v = clipped = fit(v_old, clip_range=clip_range, **rest, **c)
    count = counted_from
    while np.abs(v - target).max() > clip_range and count < MOST_ITERATIONS:
        v = fit(v, clip_range=clip_range, **rest, **c)
        count += 1
    return np.array([*(size(x - target) for x in (v_old, clipped, plain)), count])

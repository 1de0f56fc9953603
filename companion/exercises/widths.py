"""The clipped objective as a function of the band's width, and the cases of further exercise 4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from companion.exercises import own
from companion.exercises.cases import as_lists
from companion.exercises.clipping import (
    batches,
    clipped_derivative,
    clipped_gradient,
    clipped_objective,
    inside,
    keeps,
    ratios,
)
from companion.exercises.reuse import LR, NEVER, mean_kl
from companion.policy import softmax

STEPS = 40
WIDTHS = (0.1, 0.2)  # compared on the student's own bandit


def samples(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw ratios and advantages; in one case no sample has improved, and in one all have."""
    cases = [{key: case[key] for key in ("ratio", "adv")} for case in batches(student, rng)]
    for case, sign in zip(cases[1:], (-1, 1), strict=True):
        ratio, adv = np.array(case["ratio"]), np.array(case["adv"])
        case["adv"] = (sign * np.abs(adv) * np.sign(ratio - 1)).tolist()
    return cases


def runs(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw bandits, and widths of the band under which to maximize."""
    cases = []
    for n, steps, widths in ((8, 3, [0.05, 0.3]), (9, 5, [0.4, NEVER]), (10, 4, [0.1, 0.2, 1.0])):
        bandit = as_lists(own.draw_bandit(rng, n, d=2)._asdict())
        cases.append(bandit | {"widths": widths, "lr": 0.5, "steps": steps})
    return cases


def own_curve(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the student's own bandit, and how its objective is to be maximized."""
    bandit = as_lists(own.own_bandit(student)._asdict())
    return [bandit | {"widths": list(WIDTHS), "lr": LR, "steps": STEPS}]


def value_and_slope(
    ratio: Any,
    adv: Any,
    clip_range: float,
    *,
    lost: Callable[..., Any] = lambda ratio, adv, clip_range: ~keeps(ratio, adv, clip_range),
    per_sample: Callable[[Any], Any] = np.abs,
) -> Any:
    """Return the mean clipped objective, and its derivative in the width of the band."""
    slope = np.mean(per_sample(adv) * lost(ratio, adv, clip_range))
    return np.array([clipped_objective(ratio, adv, clip_range).mean(), slope])


def value_and_slope_of_max(ratio: Any, adv: Any, clip_range: float) -> Any:
    """Return the same for the maximum of the two products."""
    return -value_and_slope(ratio, -adv, clip_range)


def value_and_ratio_slope(ratio: Any, adv: Any, clip_range: float) -> Any:
    """Return the mean clipped objective, and its mean derivative in the ratios."""
    slope = np.mean(clipped_derivative(ratio, adv, clip_range))
    return np.array([clipped_objective(ratio, adv, clip_range).mean(), slope])


def outside(ratio: Any, adv: Any, clip_range: float) -> Any:
    """Say of each sample whether its ratio is not in the band."""
    return ~inside(ratio, adv, clip_range)


def improved(ratio: Any, adv: Any) -> Any:
    """Return how far each ratio has gone in the direction of its advantage; negative if back."""
    return np.sign(adv) * (ratio - 1)


def free_width(ratio: Any, adv: Any) -> Any:
    """Return the smallest width at which the clip changes nothing on a batch."""
    return improved(ratio, adv).max(initial=0.0)


def first_clipped(ratio: Any, adv: Any) -> Any:
    """Return the largest width at which the clip changes each sample that has improved."""
    ahead = improved(ratio, adv)
    return ahead[ahead > 0].min() if (ahead > 0).any() else 0.0


def mean_improvement(ratio: Any, adv: Any) -> Any:
    """Return the mean over the samples that have improved."""
    ahead = improved(ratio, adv)
    return ahead[ahead > 0].mean() if (ahead > 0).any() else 0.0


def ascend(
    features: Any,
    W: Any,
    actions: Any,
    adv: Any,
    clip_range: float,
    lr: float,
    steps: int,
    start: Any = None,
) -> list[Any]:
    """Return the parameters before the first and after each step on the whole batch."""
    path = [W if start is None else start]
    for _ in range(steps):
        gradient = clipped_gradient(features, W, path[-1], actions, adv, clip_range)
        path.append(path[-1] + lr * gradient)
    return path


def promised_gain(ratio: Any, adv: Any, clip_range: float) -> Any:
    """Return the change of the sampled surrogate."""
    return np.mean((ratio - 1) * adv)


def promised_value(ratio: Any, adv: Any, clip_range: float) -> Any:
    """Return the sampled surrogate itself."""
    return np.mean(ratio * adv)


def clipped_gain(ratio: Any, adv: Any, clip_range: float) -> Any:
    """Return the change of the clipped objective."""
    return np.mean(clipped_objective(ratio, adv, clip_range) - adv)


def true_gain(old: Any, new: Any, means: Any, actions: Any) -> Any:
    """Return the change of the expected reward in the batch's contexts."""
    return ((new - old) * means).sum(axis=1).mean()


def sampled_gain(old: Any, new: Any, means: Any, actions: Any) -> Any:
    """Return its estimate from the actions taken."""
    n = np.arange(len(actions))
    return np.mean((new[n, actions] / old[n, actions] - 1) * means[n, actions])


def width_curve(
    features: Any,
    W: Any,
    means: Any,
    actions: Any,
    adv: Any,
    widths: Any,
    lr: float,
    steps: int,
    *,
    promised: Callable[..., Any] = promised_gain,
    gained: Callable[..., Any] = true_gain,
    divergence: Callable[[Any, Any], Any] = mean_kl,
    restarted: bool = True,
) -> Any:
    """Return for each width the promised gain, the true gain and the KL of a run."""
    rows, old, new_W = [], softmax(features @ W), W
    for width in widths:
        start = W if restarted else new_W
        new_W = ascend(features, W, actions, adv, width, lr, steps, start)[-1]
        ratio, new = ratios(features, W, new_W, actions), softmax(features @ new_W)
        gain = gained(old, new, means, actions)
        rows.append([promised(ratio, adv, width), gain, divergence(old, new)])
    return np.array(rows)


def run_width(features: Any, W: Any, actions: Any, adv: Any, lr: float, steps: int) -> Any:
    """Return the smallest width at which the clip changes nothing anywhere on the free run."""
    path = ascend(features, W, actions, adv, NEVER, lr, steps)
    return max(free_width(ratios(features, W, new_W, actions), adv) for new_W in path)


def width_numbers(
    features: Any,
    W: Any,
    means: Any,
    actions: Any,
    adv: Any,
    widths: Any,
    lr: float,
    steps: int,
    *,
    curve: Callable[..., Any] = width_curve,
    free: Callable[..., Any] = run_width,
    compared: Callable[[Any, Any], Any] = np.divide,
) -> Any:
    """Return what doubling the width does to promise and KL, the free run, and its width."""
    run = features, W, means, actions, adv, [*widths, NEVER], lr, steps
    narrow, wide, unclipped = curve(*run)
    promise, _, distance = compared(wide, narrow)
    width = free(features, W, actions, adv, lr, steps)
    return np.array([promise, distance, *unclipped, width])

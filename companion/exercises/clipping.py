"""The clipped objective, its derivatives, and the cases of exercise 20.5."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from companion.exercises import own
from companion.exercises.cases import N_ACTIONS, N_CASES, action_probabilities, as_lists
from companion.exercises.own import uniform
from companion.exercises.softmax_linear import taken
from companion.policy import softmax

N_STATES = 3
N_SAMPLES = 12
CLIP_RANGE = 0.2  # on the student's own batch


def batches(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw ratios, none at an edge of the band, advantages and a clip range."""
    return [
        as_lists(
            {
                "ratio": np.round(1 + 0.8 * uniform(rng, N_SAMPLES), 1) + 0.03,
                "adv": np.round(3 * uniform(rng, N_SAMPLES), 1) + 0.05,
                "clip_range": clip_range,
            }
        )
        for clip_range in (0.1, 0.2, 0.3)
    ]


def tabular(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw an old policy, logits at some distance, and samples that the old policy took."""
    cases = []
    for _ in range(N_CASES):
        old = action_probabilities(rng, N_STATES)
        states = rng.integers(N_STATES, size=N_SAMPLES)
        case = {
            "logits": np.round(np.log(old) + uniform(rng, (N_STATES, N_ACTIONS)), 2),
            "old": old,
            "states": states,
            "actions": own.draw_actions(old[states], rng),
            "adv": np.round(3 * uniform(rng, N_SAMPLES), 1),
        }
        cases.append(as_lists(case | {"clip_range": CLIP_RANGE}))
    return cases


def own_moved_batch(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the student's own batch, and the parameters to which the policy has moved."""
    batch = own.own_batch(student)._asdict()
    move = np.round(uniform(own.generator(student, "move"), batch["W"].shape), 2)
    return [as_lists(batch | {"new_W": batch["W"] + move, "clip_range": CLIP_RANGE})]


def keeps(ratio: Any, adv: Any, clip_range: float) -> Any:
    """Say of each sample whether the minimum is the unclipped product."""
    return np.where(adv > 0, ratio <= 1 + clip_range, ratio >= 1 - clip_range)


def keeps_of_max(ratio: Any, adv: Any, clip_range: float) -> Any:
    """Say of each sample whether the maximum is the unclipped product."""
    return keeps(ratio, -adv, clip_range)


def inside(ratio: Any, adv: Any, clip_range: float) -> Any:
    """Say of each sample whether its ratio is in the band."""
    return np.abs(ratio - 1) <= clip_range


def clipped_derivative(ratio: Any, adv: Any, clip_range: float) -> Any:
    """Return A where the minimum is r A, else 0."""
    return adv * keeps(ratio, adv, clip_range)


def clipped_objective(ratio: Any, adv: Any, clip_range: float) -> Any:
    """Return min(r A, clip(r, 1 - eps, 1 + eps) A)."""
    return np.minimum(ratio * adv, np.clip(ratio, 1 - clip_range, 1 + clip_range) * adv)


def ratios(features: Any, W: Any, new_W: Any, actions: Any) -> Any:
    """Return the ratio of each sample."""
    return taken(softmax(features @ new_W), actions) / taken(softmax(features @ W), actions)


def clipped_gradient(
    features: Any,
    W: Any,
    new_W: Any,
    actions: Any,
    adv: Any,
    clip_range: float,
    *,
    kept: Callable[..., Any] = keeps,
    weight: Callable[[Any], Any] = lambda ratio: ratio,
    centre: Callable[[Any, Any], Any] = lambda new, old: new,
) -> Any:
    """Return the gradient of the mean clipped objective in new_W, or a variant of it."""
    old, new = softmax(features @ W), softmax(features @ new_W)
    ratio = taken(new, actions) / taken(old, actions)
    slope = adv * weight(ratio) * kept(ratio, adv, clip_range)
    score = np.eye(W.shape[1])[actions] - centre(new, old)
    return features.T @ (slope[:, None] * score) / len(adv)


def batch_gradient(
    logits: Any,
    old: Any,
    states: Any,
    actions: Any,
    adv: Any,
    clip_range: float,
    **variant: Callable[..., Any],
) -> Any:
    """Return the gradient of the mean clipped objective in tabular logits, or a variant of it."""
    # A table is linear in features that are 1 at the state.
    rows = np.eye(len(logits))[states]
    return clipped_gradient(rows, np.log(old), logits, actions, adv, clip_range, **variant)


def clipping_numbers(
    features: Any,
    W: Any,
    new_W: Any,
    actions: Any,
    adv: Any,
    clip_range: float,
    *,
    kept: Callable[..., Any] = keeps,
    lower: Callable[[Any, Any], Any] = np.minimum,
) -> Any:
    """Return the shares that lose their gradient (A > 0, A < 0), that keep it outside, the gap."""
    ratio = ratios(features, W, new_W, actions)
    lost = ~kept(ratio, adv, clip_range).astype(bool)
    outside = ~inside(ratio, adv, clip_range)
    plain, clip = ratio * adv, np.clip(ratio, 1 - clip_range, 1 + clip_range) * adv
    shares = [lost & (adv > 0), lost & (adv < 0), outside & ~lost & (adv != 0)]
    return np.array([*np.mean(shares, axis=1), np.mean(plain - lower(plain, clip))])

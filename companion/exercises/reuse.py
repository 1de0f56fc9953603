"""Repeated passes over one batch of a bandit, and the cases of further exercise 3.

The policy's logits are features @ W; the data are from W, and new_W is where the policy is now.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from companion.exercises import own
from companion.exercises.cases import as_lists
from companion.exercises.clipping import CLIP_RANGE, clipped_gradient, keeps, ratios
from companion.exercises.own import uniform
from companion.policy import kl, softmax
from companion.sampling import effective_sample_share

LR, PASSES, SIZE = 0.3, 10, 10  # on the student's own bandit
EARLY = 3  # passes after which samples have lost their gradient
NEVER = 1e6  # a clip range that never binds


def moved(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw batches, parameters to which the policy has moved, and clip ranges."""
    return [_moved(rng, n, eps) for n, eps in ((6, 0.1), (8, 0.2), (10, 0.3))]


def departures(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw larger batches, without advantages."""
    cases = [_moved(rng, n, eps) for n, eps in ((20, 0.1), (25, 0.2), (30, 0.3))]
    return [{key: case[key] for key in case if key != "adv"} for case in cases]


def _moved(rng: np.random.Generator, n: int, clip_range: float) -> dict[str, Any]:
    bandit = own.draw_bandit(rng, n, d=2)._asdict()
    new_W = np.round(bandit["W"] + uniform(rng, bandit["W"].shape), 2)
    case = bandit | {"new_W": new_W, "clip_range": clip_range}
    return as_lists({key: case[key] for key in case if key != "means"})


def batches(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw batches, and how to go through them; the minibatches divide them evenly."""
    cases = []
    for n, size, passes, clip_range in ((6, 3, 2, 0.1), (8, 2, 3, 0.2), (9, 3, 4, 0.3)):
        bandit = own.draw_bandit(rng, n, d=2)._asdict()
        case = as_lists({key: bandit[key] for key in bandit if key != "means"})
        run = {"clip_range": clip_range, "lr": 0.5, "passes": passes, "size": size}
        cases.append(case | run)
    return cases


def own_runs(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the student's own bandit, and how to go through its batch."""
    bandit = own.own_bandit(student)._asdict()
    case = as_lists({key: bandit[key] for key in bandit if key != "means"})
    return [case | {"clip_range": CLIP_RANGE, "lr": LR, "passes": PASSES, "size": SIZE}]


def mean_kl(old: Any, new: Any) -> Any:
    """Return the mean of KL(old || new) over the states."""
    return kl(old, new).mean()


def share_outside(ratio: Any, clip_range: float) -> Any:
    """Return the share of ratios on either side of the band."""
    return np.mean(np.abs(ratio - 1) > clip_range)


def share_above(ratio: Any, clip_range: float) -> Any:
    """Return the share of ratios above the band."""
    return np.mean(ratio > 1 + clip_range)


def departure(
    features: Any,
    W: Any,
    new_W: Any,
    actions: Any,
    clip_range: float,
    *,
    divergence: Callable[[Any, Any], Any] = mean_kl,
    outside: Callable[[Any, float], Any] = share_outside,
    effective: Callable[[Any], Any] = effective_sample_share,
) -> Any:
    """Return the mean KL, the share outside the band, and the effective share of the samples."""
    ratio = ratios(features, W, new_W, actions)
    far = divergence(softmax(features @ W), softmax(features @ new_W))
    return np.array([far, outside(ratio, clip_range), effective(ratio)])


def reuse(
    features: Any,
    W: Any,
    actions: Any,
    adv: Any,
    clip_range: float,
    lr: float,
    passes: int,
    size: int,
    *,
    gradient: Callable[..., Any] = clipped_gradient,
    refreshed: Callable[[Any, Any], Any] = lambda old_W, new_W: old_W,
    share: float = 1.0,
) -> Any:
    """Return the parameters after passes over the batch, a minibatch at a time."""
    new_W, old_W = W, W
    for _ in range(passes):
        old_W = refreshed(old_W, new_W)
        for start in range(0, len(adv), size):
            part = slice(start, start + size)
            data = features[part], old_W, new_W, actions[part], adv[part], clip_range
            new_W = new_W + share * lr * gradient(*data)
    return new_W


def always_new(features: Any, W: Any, new_W: Any, *data: Any) -> Any:
    """Return the gradient as if the present policy had collected the data."""
    return clipped_gradient(features, new_W, new_W, *data)


def reuse_numbers(
    features: Any,
    W: Any,
    actions: Any,
    adv: Any,
    clip_range: float,
    lr: float,
    passes: int,
    size: int,
    *,
    run: Callable[..., Any] = reuse,
    measure: Callable[..., Any] = departure,
    of_all: bool = False,
) -> Any:
    """Return KL with and without the clip, without it after one pass, and what is outside."""
    batch = features, W, actions, adv

    def after(width: float, count: int) -> Any:
        return run(*batch, width, lr, count, size)

    clipped, free, once, early = (
        after(*c) for c in ((clip_range, passes), (NEVER, passes), (NEVER, 1), (clip_range, EARLY))
    )
    far = [measure(features, W, new_W, actions, clip_range) for new_W in (once, free, clipped)]
    gone = ~keeps(ratios(features, W, early, actions), adv, clip_range)
    still = np.abs(ratios(features, W, clipped, actions) - 1) > clip_range
    kls = [one[0] for one in far]
    among = len(adv) if of_all else gone.sum()
    return np.array([*kls, far[2][1], far[1][2], (gone & still).sum() / among])

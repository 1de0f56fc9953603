"""Exercise 20.8: the clipped value loss, its gradient, and the case in which it hurts."""

from __future__ import annotations

from typing import Any

import numpy as np

from companion.exercises.part import Misconception, Part
from companion.exercises.value_clipping import (
    clipped_value,
    clipped_value_loss,
    dead,
    derivative,
    fit,
    fit_numbers,
    fits,
    halved_derivative,
    identity_derivative,
    outside,
    own_values,
    plain_derivative,
    relative_band,
    samples,
    squared_error,
)

MIN = (
    "The clip is to take away what a large change promises: which of the two losses promises less?"
)
FACTOR = "The loss is the square itself, not half of it."
PROJECTED = "The clip is in the loss, and does not hold the value itself to the band."


def plain_or_zero(v: Any, target: Any, zero: Any) -> Any:
    """Return 2 (v - G), or 0 where it is said."""
    return np.where(zero, 0.0, 2 * (v - target))


PARTS = (
    Part(
        id="20-8-a",
        points=2,
        title="The clipped value loss",
        kind="function",
        name="clipped_value_loss",
        cases=samples,
        reference=clipped_value_loss,
        misconceptions=(
            Misconception(
                "the minimum for the maximum",
                MIN,
                lambda **c: clipped_value_loss(worse=np.minimum, **c),
            ),
            Misconception(
                "the clipped value alone",
                "There are two losses, and the larger one counts.",
                lambda v, v_old, target, clip_range: (
                    (clipped_value(v, v_old, clip_range) - target) ** 2
                ),
            ),
            Misconception(
                "nothing is clipped",
                "If the band is around the target, clipping never makes the loss larger: which"
                " value is it around?",
                squared_error,
            ),
            Misconception(
                "the band is relative to the old value",
                "The clip is on a difference of values, not on their ratio.",
                lambda **c: clipped_value_loss(held=relative_band, **c),
            ),
            Misconception(
                "the old value is not added back",
                "What is clipped is the change; the loss compares a value with the target.",
                lambda **c: clipped_value_loss(
                    held=lambda v, v_old, clip_range: np.clip(v - v_old, -clip_range, clip_range),
                    **c,
                ),
            ),
            Misconception(
                "a factor one half",
                FACTOR,
                lambda **c: clipped_value_loss(**c) / 2,
            ),
            Misconception(
                "absolute errors instead of squares",
                "The loss is that of a mean.",
                lambda **c: np.sqrt(clipped_value_loss(**c)),
            ),
        ),
    ),
    Part(
        id="20-8-b",
        points=3,
        title="The derivative",
        kind="function",
        name="clipped_value_derivative",
        cases=samples,
        reference=derivative,
        misconceptions=(
            Misconception(
                "the minimum for the maximum",
                MIN,
                lambda v, v_old, target, clip_range: plain_or_zero(
                    v,
                    target,
                    outside(v, v_old, clip_range) & ~dead(v, v_old, target, clip_range),
                ),
            ),
            Misconception(
                "zero everywhere outside the band",
                "The maximum picks the unclipped loss for some values outside: for which?",
                lambda v, v_old, target, clip_range: plain_or_zero(
                    v, target, outside(v, v_old, clip_range)
                ),
            ),
            Misconception(
                "zero wherever the change was towards the target",
                "A value may have gone through the target and come out on the other side.",
                lambda v, v_old, target, clip_range: plain_or_zero(
                    v,
                    target,
                    outside(v, v_old, clip_range) & ((v - v_old) * (target - v_old) > 0),
                ),
            ),
            Misconception(
                "nowhere zero",
                "Where the maximum picks the clipped loss, how does that change with the value?",
                plain_derivative,
            ),
            Misconception(
                "the clip is differentiated as if it changed nothing",
                "Outside the band the clipped value does not move with the value.",
                identity_derivative,
            ),
            Misconception(
                "zero inside the band instead of outside",
                "Where the value has not moved much, the two losses are the same.",
                lambda v, v_old, target, clip_range: plain_or_zero(
                    v, target, ~dead(v, v_old, target, clip_range)
                ),
            ),
            Misconception(
                "the factor 2 is forgotten",
                FACTOR,
                halved_derivative,
            ),
            Misconception(
                "the sign is reversed",
                "A loss grows away from the target.",
                lambda **c: -derivative(**c),
            ),
        ),
    ),
    Part(
        id="20-8-c",
        points=2,
        title="Gradient steps",
        kind="function",
        name="fit",
        cases=fits,
        reference=fit,
        misconceptions=(
            Misconception(
                "the clip is left out, or its band moves along",
                "The old values are those from when the data were collected; values that have left"
                " their band stop there.",
                lambda **c: fit(slope=plain_derivative, **c),
            ),
            Misconception(
                "the values are held to the band",
                PROJECTED,
                lambda **c: fit(projected=True, **c),
            ),
            Misconception(
                "the factor 2 is forgotten",
                FACTOR,
                lambda **c: fit(slope=halved_derivative, **c),
            ),
            Misconception(
                "one step too many",
                "Count the steps.",
                lambda steps, **c: fit(steps=steps + 1, **c),
            ),
            Misconception(
                "one step too few",
                "Count the steps.",
                lambda steps, **c: fit(steps=steps - 1, **c),
            ),
            Misconception(
                "the mean over the states is differentiated",
                "The loss here is the sum over the states.",
                lambda lr, **c: fit(lr=lr / len(c["target"]), **c),
            ),
        ),
    ),
    Part(
        id="20-8-d",
        points=3,
        title="Where it hurts",
        kind="numbers",
        name="numbers",
        cases=own_values,
        reference=fit_numbers,
        misconceptions=(
            Misconception(
                "the mean square without the root",
                "The errors are asked for in units of value.",
                lambda **c: fit_numbers(size=lambda error: np.mean(error**2), **c),
            ),
            Misconception(
                "the sum of squares instead of their mean",
                "A root mean square does not grow with the number of states.",
                lambda **c: fit_numbers(size=np.linalg.norm, **c),
            ),
            Misconception(
                "the fits with and without the clip are interchanged",
                "First with the clip, then without.",
                lambda **c: fit_numbers(**c)[[0, 2, 1, 3]],
            ),
            Misconception(
                "the iterations are counted from 0",
                "The first fit is iteration 1.",
                lambda **c: fit_numbers(counted_from=0, **c),
            ),
            Misconception(
                "the factor 2 is forgotten",
                FACTOR,
                lambda **c: fit_numbers(slope=halved_derivative, **c),
            ),
            Misconception(
                "gradient steps are counted instead of iterations",
                "An iteration is a whole fit.",
                lambda steps, **c: fit_numbers(steps=steps, **c) * [1, 1, 1, steps],
            ),
        ),
    ),
)

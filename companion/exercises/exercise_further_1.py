"""Further exercise 1: what can be reached inside an asymmetric band."""

from __future__ import annotations

import numpy as np

from companion.exercises.bands import (
    added_batches,
    band_numbers,
    bands,
    batches_needed,
    edges_as_logs,
    exact_batches,
    journeys,
    looser,
    moved_logit,
    normalized_alone,
    normalized_edges,
    one_gives_way,
    own_policy,
    reachable,
    reachable_together,
)
from companion.exercises.part import Misconception, Part

INTERCHANGED = "Which of the two ranges belongs to a ratio above 1?"
MULTIPLIED = "The band is on a ratio, so what is the room of an action proportional to?"
ALONE = "If one action gains, the others lose as much: are their ratios still in the band?"
WHOLE = "A batch that is only partly needed is a batch: the target must have been reached."
COMPOUND = "The next batch is collected by the policy that this one has left behind."

PARTS = (
    Part(
        id="further-1-a",
        points=2,
        title="Where the gradient dies",
        kind="function",
        name="reachable",
        cases=bands,
        reference=reachable,
        misconceptions=(
            Misconception(
                "the two ranges are interchanged",
                INTERCHANGED,
                lambda p, low, high: reachable(p, high, low),
            ),
            Misconception(
                "the lower range on both sides",
                "The band is not symmetric.",
                lambda p, low, high: reachable(p, low, low),
            ),
            Misconception(
                "the probability may exceed 1",
                "Look at the most common action: is that still a probability?",
                lambda p, low, high: np.array([(1 - low) * p, (1 + high) * p]),
            ),
            Misconception(
                "the range is added to the probability",
                MULTIPLIED,
                lambda p, low, high: np.clip([p - low, p + high], 0, 1),
            ),
            Misconception(
                "the band is on the log of the ratio",
                "The clip is applied to the ratio itself.",
                lambda p, low, high: np.minimum([p * np.exp(-low), p * np.exp(high)], 1),
            ),
            Misconception(
                "the band is on the logit",
                "The clip is applied to the ratio of probabilities, wherever the logits are.",
                lambda p, low, high: np.array([moved_logit(p, -low), moved_logit(p, high)]),
            ),
            Misconception(
                "the edge is divided by a sum",
                "The ratio at the edge is of probabilities, which are normalized already.",
                normalized_alone,
            ),
            Misconception(
                "the two rows are interchanged",
                "The smallest probabilities come first.",
                lambda p, low, high: reachable(p, low, high)[::-1],
            ),
        ),
    ),
    Part(
        id="further-1-b",
        points=3,
        title="All ratios in the band",
        kind="function",
        name="reachable_together",
        cases=bands,
        reference=reachable_together,
        misconceptions=(
            Misconception(
                "each action alone",
                ALONE,
                reachable,
            ),
            Misconception(
                "the others move by the action's own range",
                "If the action rises, on which side of 1 are the ratios of the others?",
                lambda p, low, high: np.array(
                    [
                        np.maximum((1 - low) * p, p - low * (1 - p)),
                        np.minimum((1 + high) * p, p + high * (1 - p)),
                    ]
                ),
            ),
            Misconception(
                "only the others are bounded",
                "Look at a rare action: is its own ratio in the band?",
                lambda p, low, high: np.array([p - high * (1 - p), p + low * (1 - p)]),
            ),
            Misconception(
                "one other action gives way",
                "Must all of the probability come from the same other action?",
                one_gives_way,
            ),
            Misconception(
                "the edges are divided by their sum",
                "Dividing by the sum moves every ratio: is any of them at an edge, and which could"
                " go on?",
                normalized_edges,
            ),
            Misconception(
                "the looser of the two bounds",
                "Both have to hold.",
                looser,
            ),
            Misconception(
                "the two ranges are interchanged",
                INTERCHANGED,
                lambda p, low, high: reachable_together(p, high, low),
            ),
        ),
    ),
    Part(
        id="further-1-c",
        points=2,
        title="Batches to a target",
        kind="function",
        name="batches_needed",
        cases=journeys,
        reference=batches_needed,
        misconceptions=(
            Misconception(
                "rounded down",
                WHOLE,
                lambda **c: batches_needed(rounded=np.floor, **c),
            ),
            Misconception(
                "rounded to the nearest whole number",
                WHOLE,
                lambda **c: batches_needed(rounded=np.round, **c),
            ),
            Misconception(
                "not rounded",
                WHOLE,
                exact_batches,
            ),
            Misconception(
                "the steps are added",
                COMPOUND,
                added_batches,
            ),
            Misconception(
                "the range is the step of the log probability",
                "What is the logarithm of the ratio at the edge?",
                edges_as_logs,
            ),
            Misconception(
                "the upper range for falling actions, too",
                "An action that falls meets the other edge.",
                lambda p, target, low, high: np.ceil(np.abs(np.log(target / p)) / np.log1p(high)),
            ),
            Misconception(
                "the two ranges are interchanged",
                INTERCHANGED,
                lambda p, target, low, high: batches_needed(p, target, high, low),
            ),
        ),
    ),
    Part(
        id="further-1-d",
        points=3,
        title="Your own policy",
        kind="numbers",
        name="numbers",
        cases=own_policy,
        reference=band_numbers,
        misconceptions=(
            Misconception(
                "the rarest and the most common action are interchanged",
                "The first number is of the rarest action.",
                lambda **c: band_numbers(picks=(np.argmax, np.argmin), **c),
            ),
            Misconception(
                "each action alone",
                ALONE,
                lambda **c: band_numbers(together=reachable, **c),
            ),
            Misconception(
                "the two ranges are interchanged",
                INTERCHANGED,
                lambda low, high, **c: band_numbers(low=high, high=low, **c),
            ),
            Misconception(
                "the numbers of batches are rounded down",
                WHOLE,
                lambda **c: band_numbers(
                    batches=lambda *a: batches_needed(*a, rounded=np.floor), **c
                ),
            ),
            Misconception(
                "the steps are added",
                COMPOUND,
                lambda **c: band_numbers(batches=added_batches, **c),
            ),
            Misconception(
                "changes instead of probabilities",
                "Asked for is where the action gets, not how far it moves.",
                lambda p, **c: (
                    band_numbers(p=p, **c) - 100 * np.array([p.min(), p.max(), p.max(), 0, 0])
                ),
            ),
            Misconception(
                "probabilities instead of percent",
                "The first three numbers are in percent.",
                lambda **c: band_numbers(**c) / [100, 100, 100, 1, 1],
            ),
            Misconception(
                "the last two numbers are interchanged",
                "First the asymmetric band, then the symmetric one.",
                lambda **c: band_numbers(**c)[[0, 1, 2, 4, 3]],
            ),
        ),
    ),
)

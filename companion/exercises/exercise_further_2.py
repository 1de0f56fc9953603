"""Further exercise 2: the clip as a bound on the change of a logit."""

from __future__ import annotations

import numpy as np

from companion.exercises.logit_bands import (
    cut,
    interchanged,
    limits,
    log_edges,
    log_slope,
    logit,
    logit_numbers,
    looser,
    moves,
    not_turned_round,
    others_factors,
    own_factors,
    own_interval,
    own_policy,
    probabilities,
    probability_changes,
    ranges_interchanged,
    same_on_both_sides,
    upside_down,
    whole_interval,
    with_changes,
)
from companion.exercises.part import Misconception, Part

INTERCHANGED = "Which of the two ranges belongs to a ratio above 1?"
RARE = "That is the limit of a rare action: what does a common one do to the normalization?"
UNITS = "Asked for is the change of the logit, not that of the probability."
TURNED = "A logit that rises makes the other actions rarer: which edge do their ratios meet?"

PARTS = (
    Part(
        id="further-2-a",
        points=3,
        title="The action's own ratio",
        kind="function",
        name="logit_interval",
        cases=moves,
        reference=own_interval,
        misconceptions=(
            Misconception(
                "the logs of the edges",
                RARE,
                lambda p, low, high, most: cut(np.outer([1 - low, 1 + high], 0 * p + 1), most),
            ),
            Misconception(
                "the first order in the range",
                "It holds for a narrow band; here the edges are at some distance from 1.",
                lambda p, low, high, most: np.clip(
                    np.outer([-low, high], 1 / (1 - p)), -most, most
                ),
            ),
            Misconception(
                "the probability of the other actions instead of the action's",
                "The ratio is that of the action whose logit moves.",
                lambda p, low, high, most: own_interval(1 - p, low, high, most),
            ),
            Misconception(
                "changes of the probability",
                UNITS,
                lambda p, low, high, most: np.array([-low * p, np.minimum(high * p, 1 - p)]),
            ),
            Misconception(
                "no change where the edge cannot be reached",
                "If the ratio never gets to the edge, what is there to stop the logit?",
                lambda p, low, high, most: np.where(
                    np.isinf(own_factors(p, low, high)), 0, own_interval(p, low, high, most)
                ),
            ),
            Misconception(
                "the old logit is not subtracted",
                "Asked for is how far the logit moves from where it was.",
                lambda p, low, high, most: np.clip(
                    np.log(own_factors(p, low, high)) + logit(p), -most, most
                ),
            ),
            Misconception(
                "the largest change only where there is no bound",
                "No change is of more than `most`, upwards or downwards.",
                lambda p, low, high, most: np.where(
                    np.isinf(own_factors(p, low, high)), most, cut(own_factors(p, low, high), 99)
                ),
            ),
            Misconception(
                "the two ranges are interchanged",
                INTERCHANGED,
                lambda p, low, high, most: own_interval(p, high, low, most),
            ),
        ),
    ),
    Part(
        id="further-2-b",
        points=3,
        title="The ratios of all actions",
        kind="function",
        name="whole_interval",
        cases=moves,
        reference=whole_interval,
        misconceptions=(
            Misconception(
                "only the action's own ratio",
                "The other actions have ratios, too.",
                own_interval,
            ),
            Misconception(
                "only the ratios of the others",
                "The action has a ratio, too.",
                lambda most, **c: cut(others_factors(**c), most),
            ),
            Misconception(
                "the looser of the two bounds",
                "All ratios have to be in the band.",
                lambda **c: whole_interval(combined=looser, **c),
            ),
            Misconception(
                "the ratios of the others are upside down",
                "The new probability is above, also for the others.",
                lambda **c: whole_interval(others=upside_down, **c),
            ),
            Misconception(
                "the others' bounds are not turned round",
                TURNED,
                lambda **c: whole_interval(others=not_turned_round, **c),
            ),
            Misconception(
                "the tighter side on both sides",
                "Both sides are asked for, and they need not be equal.",
                same_on_both_sides,
            ),
            Misconception(
                "the two ranges of the others are interchanged",
                TURNED,
                lambda **c: whole_interval(others=ranges_interchanged, **c),
            ),
        ),
    ),
    Part(
        id="further-2-c",
        points=2,
        title="A narrow band",
        kind="function",
        name="narrow_band",
        cases=probabilities,
        reference=limits,
        misconceptions=(
            Misconception(
                "the probability of the other actions instead of the action's",
                "Try a rare action: its logit has to move by about the range.",
                lambda p: limits(1 - p),
            ),
            Misconception(
                "the derivatives are in the probability",
                "The range belongs to the ratio: how far does the probability move?",
                lambda p: limits(p) / [p, p**2],
            ),
            Misconception(
                "a factor one half too many in the second limit",
                "Each of the two changes has a term of second order.",
                lambda p: limits(p) * [[1], [0.5]],
            ),
            Misconception(
                "a factor two too many in the second limit",
                "What is the factor of the second order in Taylor's formula?",
                lambda p: limits(p) * [[1], [2]],
            ),
            Misconception(
                "the sign of the second limit is reversed",
                "The lowest change is negative: which of the two is the longer one?",
                lambda p: limits(p) * [[1], [-1]],
            ),
            Misconception(
                "the normalization is left out",
                RARE,
                lambda p: np.array([1 + 0 * p, -1 + 0 * p]),
            ),
            Misconception(
                "the width of the interval",
                "The first limit is that of the highest change alone.",
                lambda p: limits(p) * [[2], [1]],
            ),
            Misconception(
                "the curvature of the logarithm of the ratio is left out",
                "The new logit is a difference of two logarithms: both of them are curved.",
                lambda p: np.array([1 / (1 - p), p**2 / (1 - p) ** 2]),
            ),
        ),
    ),
    Part(
        id="further-2-d",
        points=3,
        title="Your own policy",
        kind="numbers",
        name="numbers",
        cases=own_policy,
        reference=logit_numbers,
        misconceptions=(
            Misconception(
                "the rarest and the most common action are interchanged",
                "The first number is of the rarest action, and its own ratio.",
                lambda **c: with_changes(interchanged, **c) ** [1, 1, 1, -1],
            ),
            Misconception(
                "changes of the probability",
                UNITS,
                lambda **c: with_changes(probability_changes, **c),
            ),
            Misconception(
                "the logs of the edges",
                RARE,
                lambda **c: with_changes(log_edges, **c),
            ),
            Misconception(
                "the ratios of the others are upside down",
                "The new probability is above, also for the others.",
                lambda **c: logit_numbers(others=upside_down, **c),
            ),
            Misconception(
                "the downward change without its sign",
                "A change of a logit that falls is negative.",
                lambda **c: logit_numbers(**c) * [1, -1, 1, 1],
            ),
            Misconception(
                "the gradient is that of the log probability",
                "The objective is the ratio times the advantage: what is its derivative?",
                lambda **c: logit_numbers(slope=log_slope, **c),
            ),
            Misconception(
                "the steps are counted one too far",
                "Asked for are the steps that have been made when the ratio is first outside.",
                lambda **c: logit_numbers(steps=lambda r, c: (c + 1) / (r + 1), **c),
            ),
            Misconception(
                "the difference of the numbers of steps",
                "How many times as many steps?",
                lambda **c: logit_numbers(steps=lambda r, c: c - r, **c),
            ),
            Misconception(
                "the quotient of the numbers of steps is upside down",
                "How many times as many steps does the common action need?",
                lambda **c: logit_numbers(steps=lambda r, c: r / c, **c),
            ),
        ),
    ),
)

"""Further exercise 4: the width of the band, from nothing to no clip at all."""

from __future__ import annotations

import numpy as np

from companion.exercises.clipping import batches
from companion.exercises.part import Misconception, Part
from companion.exercises.reuse import mean_kl
from companion.exercises.widths import (
    clipped_gain,
    first_clipped,
    free_width,
    improved,
    mean_improvement,
    outside,
    own_curve,
    promised_value,
    run_width,
    runs,
    sampled_gain,
    samples,
    value_and_ratio_slope,
    value_and_slope,
    value_and_slope_of_max,
    width_curve,
    width_numbers,
)

DIRECTION = "On which side of 1 does the minimum pick the clipped product, for each sign of A?"
ARGUMENTS = "The states' KL has the policy that collected the batch first."
GAIN = "A gain is measured from the old policy: what is the surrogate there?"
EXACT = "The expected rewards of all actions are known: no action taken is needed."
STEPS = "Count the steps of gradient ascent."

PARTS = (
    Part(
        id="further-4-a",
        points=3,
        title="The objective as a function of the width",
        kind="function",
        name="value_and_slope",
        cases=batches,
        reference=value_and_slope,
        misconceptions=(
            Misconception(
                "the maximum for the minimum",
                "The objective should never promise more than the unclipped one.",
                value_and_slope_of_max,
            ),
            Misconception(
                "every sample outside the band counts in the slope",
                DIRECTION,
                lambda **c: value_and_slope(lost=outside, **c),
            ),
            Misconception(
                "the advantages count with their sign",
                "For A < 0 the clipped product is (1 - eps) A: how does it change with eps?",
                lambda **c: value_and_slope(per_sample=lambda adv: adv, **c),
            ),
            Misconception(
                "the slope is a share of samples",
                "How much does one sample change with eps?",
                lambda **c: value_and_slope(per_sample=np.ones_like, **c),
            ),
            Misconception(
                "the derivative is in the ratio",
                "Here the ratios stay where they are, and the band moves.",
                value_and_ratio_slope,
            ),
            Misconception(
                "the sum over samples instead of the mean",
                "The objective is the mean over the batch.",
                lambda **c: len(c["adv"]) * value_and_slope(**c),
            ),
            Misconception(
                "the clip is left out of the value",
                "Which samples are worth less than the product of ratio and advantage?",
                lambda ratio, adv, clip_range: np.array(
                    [np.mean(ratio * adv), value_and_slope(ratio, adv, clip_range)[1]]
                ),
            ),
            Misconception(
                "the sign of the slope is reversed",
                "Does a wider band take more away, or less?",
                lambda **c: value_and_slope(**c) * [1, -1],
            ),
        ),
    ),
    Part(
        id="further-4-b",
        points=2,
        title="Where the band no longer binds",
        kind="function",
        name="free_width",
        cases=samples,
        reference=free_width,
        misconceptions=(
            Misconception(
                "the largest distance in either direction",
                DIRECTION,
                lambda ratio, adv: np.abs(ratio - 1).max(),
            ),
            Misconception(
                "only samples with a positive advantage",
                "A negative advantage meets an edge, too.",
                lambda ratio, adv: free_width(ratio, np.maximum(adv, 0)),
            ),
            Misconception(
                "the direction is reversed",
                DIRECTION,
                lambda ratio, adv: free_width(ratio, -adv),
            ),
            Misconception(
                "the width may be negative",
                "If no sample has improved, how narrow may the band be?",
                lambda ratio, adv: improved(ratio, adv).max(),
            ),
            Misconception(
                "the edge instead of the width",
                "The band is from 1 - eps to 1 + eps: asked for is eps.",
                lambda ratio, adv: 1 + free_width(ratio, adv),
            ),
            Misconception(
                "the distance is that of the log of the ratio",
                "The band is on the ratio itself.",
                lambda ratio, adv: (np.sign(adv) * np.log(ratio)).max(initial=0.0),
            ),
            Misconception(
                "the width that leaves only one sample unclipped",
                "The clip must change none of the samples.",
                first_clipped,
            ),
            Misconception(
                "the mean over the samples that have improved",
                "The clip must change none of the samples.",
                mean_improvement,
            ),
        ),
    ),
    Part(
        id="further-4-c",
        points=3,
        title="Gain and KL for each width",
        kind="function",
        name="width_curve",
        cases=runs,
        reference=width_curve,
        misconceptions=(
            Misconception(
                "the arguments of the KL are swapped",
                ARGUMENTS,
                lambda **c: width_curve(divergence=lambda old, new: mean_kl(new, old), **c),
            ),
            Misconception(
                "the surrogate instead of its gain",
                GAIN,
                lambda **c: width_curve(promised=promised_value, **c),
            ),
            Misconception(
                "the gain of the clipped objective",
                "The promise is that of the surrogate: there is no clip in it.",
                lambda **c: width_curve(promised=clipped_gain, **c),
            ),
            Misconception(
                "the true gain is estimated from the actions taken",
                EXACT,
                lambda **c: width_curve(gained=sampled_gain, **c),
            ),
            Misconception(
                "the true value instead of its gain",
                "A gain is measured from the old policy: what is the expected reward there?",
                lambda **c: width_curve(
                    gained=lambda old, new, means, actions: (new * means).sum(axis=1).mean(), **c
                ),
            ),
            Misconception(
                "each width goes on where the last one stopped",
                "Every run starts at the old policy.",
                lambda **c: width_curve(restarted=False, **c),
            ),
            Misconception(
                "one step too few",
                STEPS,
                lambda steps, **c: width_curve(steps=steps - 1, **c),
            ),
            Misconception(
                "one step too many",
                STEPS,
                lambda steps, **c: width_curve(steps=steps + 1, **c),
            ),
            Misconception(
                "promised and true gain are interchanged",
                "First what the batch promises, then what is gained.",
                lambda **c: width_curve(**c)[:, [1, 0, 2]],
            ),
        ),
    ),
    Part(
        id="further-4-d",
        points=3,
        title="Your own bandit",
        kind="numbers",
        name="numbers",
        cases=own_curve,
        reference=width_numbers,
        misconceptions=(
            Misconception(
                "the arguments of the KL are swapped",
                ARGUMENTS,
                lambda **c: width_numbers(
                    curve=lambda *a: width_curve(*a, divergence=lambda old, new: mean_kl(new, old)),
                    **c,
                ),
            ),
            Misconception(
                "the sum of the states' KL instead of the mean",
                "A batch twice as large is not twice as far.",
                lambda **c: width_numbers(**c) * [1, 1, 1, 1, len(c["adv"]), 1],
            ),
            Misconception(
                "each width goes on where the last one stopped",
                "Every run starts at the old policy.",
                lambda **c: width_numbers(curve=lambda *a: width_curve(*a, restarted=False), **c),
            ),
            Misconception(
                "the first two numbers are upside down",
                "What does the wider band make of the narrower one's?",
                lambda **c: width_numbers(**c) ** [-1, -1, 1, 1, 1, 1],
            ),
            Misconception(
                "differences instead of quotients",
                "How many times as much?",
                lambda **c: width_numbers(compared=np.subtract, **c),
            ),
            Misconception(
                "exponents of the width instead of quotients",
                "How many times as much? The exponent is for the written part.",
                lambda **c: np.append(np.log2(width_numbers(**c)[:2]), width_numbers(**c)[2:]),
            ),
            Misconception(
                "the edge instead of the width",
                "The band is from 1 - eps to 1 + eps: asked for is eps.",
                lambda **c: width_numbers(free=lambda *a: 1 + run_width(*a), **c),
            ),
        ),
    ),
)

"""Exercise 20.5: the clipped objective, its derivatives, and which samples lose their gradient."""

from __future__ import annotations

import numpy as np

from companion.exercises.clipping import (
    batch_gradient,
    batches,
    clipped_derivative,
    clipped_objective,
    clipping_numbers,
    inside,
    keeps,
    keeps_of_max,
    own_moved_batch,
    tabular,
)
from companion.exercises.part import Misconception, Part

MAX = "The objective should never promise more than the unclipped one."
ONE_SIDED = "Try a negative advantage on both sides of the band: where should the reward stop?"
BOTH_SIDES = "A change that has made a sample worse is not clipped: what does the minimum pick?"
BAND = "The band is around the ratio of an unchanged policy, and that ratio is not zero."
PRODUCT = "The ratio is clipped, and then multiplied by the advantage."

PARTS = (
    Part(
        id="20-5-a",
        points=2,
        title="The derivative in each region",
        kind="function",
        name="clipped_derivative",
        cases=batches,
        reference=clipped_derivative,
        misconceptions=(
            Misconception(
                "the maximum for the minimum",
                MAX,
                lambda ratio, adv, clip_range: adv * keeps_of_max(ratio, adv, clip_range),
            ),
            Misconception(
                "no gradient on either side of the band",
                BOTH_SIDES,
                lambda ratio, adv, clip_range: adv * inside(ratio, adv, clip_range),
            ),
            Misconception(
                "a one-sided clip: the sign of the advantage is ignored",
                ONE_SIDED,
                lambda ratio, adv, clip_range: adv * (ratio <= 1 + clip_range),
            ),
            Misconception(
                "the gradient is zero inside instead of outside",
                "At a ratio of 1 the clipped objective agrees with the unclipped one.",
                lambda ratio, adv, clip_range: adv - clipped_derivative(ratio, adv, clip_range),
            ),
            Misconception(
                "the band is around 0 instead of 1",
                BAND,
                lambda ratio, adv, clip_range: adv * keeps(ratio + 1, adv, clip_range),
            ),
            Misconception(
                "the derivative is in the log of the ratio",
                "The derivative asked for is in the ratio itself.",
                lambda ratio, adv, clip_range: ratio * clipped_derivative(ratio, adv, clip_range),
            ),
            Misconception(
                "the advantage is missing in the derivative",
                "Where nothing is clipped, the objective is the ratio times something.",
                lambda ratio, adv, clip_range: keeps(ratio, adv, clip_range),
            ),
            Misconception(
                "the product is clipped instead of the ratio",
                PRODUCT,
                lambda ratio, adv, clip_range: adv * (ratio * adv <= 1 + clip_range),
            ),
        ),
    ),
    Part(
        id="20-5-b",
        points=2,
        title="The clipped objective",
        kind="function",
        name="clipped_objective",
        cases=batches,
        reference=clipped_objective,
        misconceptions=(
            Misconception(
                "the maximum for the minimum",
                MAX,
                lambda ratio, adv, clip_range: -clipped_objective(ratio, -adv, clip_range),
            ),
            Misconception(
                "the clip without the minimum",
                BOTH_SIDES,
                lambda ratio, adv, clip_range: np.clip(ratio, 1 - clip_range, 1 + clip_range) * adv,
            ),
            Misconception(
                "the minimum is taken before the advantage is multiplied",
                ONE_SIDED,
                lambda ratio, adv, clip_range: np.minimum(ratio, 1 + clip_range) * adv,
            ),
            Misconception(
                "the band is around 0 instead of 1",
                BAND,
                lambda ratio, adv, clip_range: np.minimum(
                    ratio * adv, np.clip(ratio, -clip_range, clip_range) * adv
                ),
            ),
            Misconception(
                "the product is clipped instead of the ratio",
                PRODUCT,
                lambda ratio, adv, clip_range: np.minimum(ratio * adv, 1 + clip_range),
            ),
            Misconception(
                "the advantage is clipped instead of the ratio",
                "The advantages are data; what the policy can change is the ratio.",
                lambda ratio, adv, clip_range: np.minimum(
                    ratio * adv, ratio * np.clip(adv, 1 - clip_range, 1 + clip_range)
                ),
            ),
            Misconception(
                "the objective is measured from the old policy's",
                "At a ratio of 1 it is the advantage, not zero.",
                lambda ratio, adv, clip_range: clipped_objective(ratio, adv, clip_range) - adv,
            ),
        ),
    ),
    Part(
        id="20-5-c",
        points=3,
        title="The gradient in the logits",
        kind="function",
        name="batch_gradient",
        cases=tabular,
        reference=batch_gradient,
        misconceptions=(
            Misconception(
                "the clip is left out",
                "That is the surrogate's gradient: which samples must not add to it?",
                lambda **c: batch_gradient(kept=lambda ratio, adv, clip_range: True, **c),
            ),
            Misconception(
                "no gradient on either side of the band",
                BOTH_SIDES,
                lambda **c: batch_gradient(kept=inside, **c),
            ),
            Misconception(
                "the maximum for the minimum",
                MAX,
                lambda **c: batch_gradient(kept=keeps_of_max, **c),
            ),
            Misconception(
                "the ratio is missing",
                "The derivative of a ratio in a parameter is the ratio times that of its log.",
                lambda **c: batch_gradient(weight=np.ones_like, **c),
            ),
            Misconception(
                "the policy is not subtracted in the score",
                "Raising one logit lowers the probabilities of the other actions.",
                lambda **c: batch_gradient(centre=lambda new, old: 0 * new, **c),
            ),
            Misconception(
                "the old policy's probabilities in the score",
                "The derivative is taken at the logits given, not at those of the old policy.",
                lambda **c: batch_gradient(centre=lambda new, old: old, **c),
            ),
            Misconception(
                "the sum over samples instead of the mean",
                "The objective is the mean over the batch.",
                lambda **c: len(c["adv"]) * batch_gradient(**c),
            ),
            Misconception(
                "the sign is that of a loss",
                "The objective is maximized: the gradient asked for points uphill.",
                lambda **c: -batch_gradient(**c),
            ),
        ),
    ),
    Part(
        id="20-5-d",
        points=3,
        title="Who loses the gradient on your batch",
        kind="numbers",
        name="numbers",
        cases=own_moved_batch,
        reference=clipping_numbers,
        misconceptions=(
            Misconception(
                "every sample outside the band counts as lost",
                BOTH_SIDES,
                lambda **c: clipping_numbers(kept=inside, **c),
            ),
            Misconception(
                "the maximum for the minimum",
                MAX,
                lambda **c: clipping_numbers(kept=keeps_of_max, lower=np.maximum, **c),
            ),
            Misconception(
                "the ratio is upside down",
                "An action that the new policy takes more often has a ratio above 1.",
                lambda W, new_W, **c: clipping_numbers(W=new_W, new_W=W, **c),
            ),
            Misconception(
                "shares of the samples outside the band instead of the batch",
                "All three shares have the size of the batch below.",
                lambda **c: clipping_numbers(**c) / [*[clipping_numbers(**c)[:3].sum()] * 3, 1.0],
            ),
            Misconception(
                "numbers of samples instead of shares",
                "Divide by the size of the batch.",
                lambda **c: clipping_numbers(**c) * np.array([len(c["adv"])] * 3 + [1]),
            ),
            Misconception(
                "the pessimism has the opposite sign",
                "It is what the clip takes off the unclipped objective.",
                lambda **c: clipping_numbers(**c) * [1, 1, 1, -1],
            ),
        ),
    ),
)

"""Further exercise 3: passes over the same batch, with and without the clip."""

from __future__ import annotations

import numpy as np

from companion.exercises.clipping import clipped_gradient, inside, keeps_of_max
from companion.exercises.part import Misconception, Part
from companion.exercises.reuse import (
    NEVER,
    always_new,
    batches,
    departure,
    departures,
    mean_kl,
    moved,
    own_runs,
    reuse,
    reuse_numbers,
    share_above,
)
from companion.sampling import effective_sample_share

LEFT_OUT = "That is the surrogate's gradient: which samples must not add to it?"
BOTH_SIDES = "A change that has made a sample worse is not clipped: what does the minimum pick?"
ARGUMENTS = "The states' KL has the policy that collected the batch first."
OLD = "All passes are over one batch: which policy are its ratios measured from?"
MINIBATCHES = "Each minibatch makes a step of its own, and with the mean over its own samples."
SHARE = "Divide by the size of the batch."
UPHILL = "The objective is maximized."

PARTS = (
    Part(
        id="further-3-a",
        points=2,
        title="The gradient with shared parameters",
        kind="function",
        name="clipped_gradient",
        cases=moved,
        reference=clipped_gradient,
        misconceptions=(
            Misconception(
                "the clip is left out",
                LEFT_OUT,
                lambda **c: clipped_gradient(kept=lambda ratio, adv, clip_range: True, **c),
            ),
            Misconception(
                "no gradient on either side of the band",
                BOTH_SIDES,
                lambda **c: clipped_gradient(kept=inside, **c),
            ),
            Misconception(
                "the maximum for the minimum",
                "The objective should never promise more than the unclipped one.",
                lambda **c: clipped_gradient(kept=keeps_of_max, **c),
            ),
            Misconception(
                "the ratio is missing",
                "The derivative of a ratio in a parameter is the ratio times that of its log.",
                lambda **c: clipped_gradient(weight=np.ones_like, **c),
            ),
            Misconception(
                "the policy is not subtracted in the score",
                "Raising one logit lowers the probabilities of the other actions.",
                lambda **c: clipped_gradient(centre=lambda new, old: 0 * new, **c),
            ),
            Misconception(
                "the old policy's probabilities in the score",
                "The derivative is taken at the new parameters, not at the old ones.",
                lambda **c: clipped_gradient(centre=lambda new, old: old, **c),
            ),
            Misconception(
                "the sum over samples instead of the mean",
                "The objective is the mean over the batch.",
                lambda **c: len(c["adv"]) * clipped_gradient(**c),
            ),
            Misconception(
                "the sign is that of a loss",
                "The objective is maximized: the gradient asked for points uphill.",
                lambda **c: -clipped_gradient(**c),
            ),
        ),
    ),
    Part(
        id="further-3-b",
        points=3,
        title="How far the policy has gone",
        kind="function",
        name="departure",
        cases=departures,
        reference=departure,
        misconceptions=(
            Misconception(
                "the arguments of the KL are swapped",
                ARGUMENTS,
                lambda **c: departure(divergence=lambda old, new: mean_kl(new, old), **c),
            ),
            Misconception(
                "the sum of the states' KL instead of the mean",
                "A batch twice as large is not twice as far.",
                lambda **c: departure(**c) * [len(c["actions"]), 1, 1],
            ),
            Misconception(
                "only ratios above the band are counted",
                "A band has two sides.",
                lambda **c: departure(outside=share_above, **c),
            ),
            Misconception(
                "the band is on the log of the ratio",
                "Compare the ratio itself with the edges.",
                lambda **c: departure(
                    outside=lambda ratio, clip_range: np.mean(np.abs(np.log(ratio)) > clip_range),
                    **c,
                ),
            ),
            Misconception(
                "the ratio is upside down",
                "An action that the new policy takes more often has a ratio above 1.",
                lambda W, new_W, **c: np.append(
                    departure(W=W, new_W=new_W, **c)[:1], departure(W=new_W, new_W=W, **c)[1:]
                ),
            ),
            Misconception(
                "the effective sample size is not divided by the size of the batch",
                "With all ratios equal the share is 1.",
                lambda **c: departure(**c) * [1, 1, len(c["actions"])],
            ),
            Misconception(
                "the weights are not normalized",
                "Ratios need not sum to 1, and with all ratios equal the share is 1.",
                lambda **c: departure(effective=lambda w: 1 / (w**2).sum() / len(w), **c),
            ),
            Misconception(
                "a square root is taken of the effective share",
                "The formula has squares, and no root.",
                lambda **c: departure(effective=lambda w: np.sqrt(effective_sample_share(w)), **c),
            ),
        ),
    ),
    Part(
        id="further-3-c",
        points=3,
        title="Passes over the batch",
        kind="function",
        name="reuse",
        cases=batches,
        reference=reuse,
        misconceptions=(
            Misconception(
                "the old policy is renewed before each pass",
                OLD,
                lambda **c: reuse(refreshed=lambda old_W, new_W: new_W, **c),
            ),
            Misconception(
                "the old policy is renewed before each step",
                OLD,
                lambda **c: reuse(gradient=always_new, **c),
            ),
            Misconception(
                "the whole batch in each step",
                MINIBATCHES,
                lambda size, **c: reuse(size=len(c["adv"]), **c),
            ),
            Misconception(
                "the mean is over the batch instead of the minibatch",
                MINIBATCHES,
                lambda size, **c: reuse(size=size, share=size / len(c["adv"]), **c),
            ),
            Misconception(
                "the sum over a minibatch instead of the mean",
                MINIBATCHES,
                lambda size, **c: reuse(size=size, share=size, **c),
            ),
            Misconception(
                "a single pass",
                "The batch is used again.",
                lambda passes, **c: reuse(passes=1, **c),
            ),
            Misconception(
                "the clip is left out",
                LEFT_OUT,
                lambda clip_range, **c: reuse(clip_range=NEVER, **c),
            ),
            Misconception(
                "steps downhill",
                UPHILL,
                lambda **c: reuse(share=-1.0, **c),
            ),
        ),
    ),
    Part(
        id="further-3-d",
        points=4,
        title="Your own bandit",
        kind="numbers",
        name="numbers",
        cases=own_runs,
        reference=reuse_numbers,
        misconceptions=(
            Misconception(
                "the arguments of the KL are swapped",
                ARGUMENTS,
                lambda **c: reuse_numbers(
                    measure=lambda *a: departure(*a, divergence=lambda old, new: mean_kl(new, old)),
                    **c,
                ),
            ),
            Misconception(
                "the old policy is renewed before each pass",
                OLD,
                lambda **c: reuse_numbers(
                    run=lambda *a: reuse(*a, refreshed=lambda old_W, new_W: new_W), **c
                ),
            ),
            Misconception(
                "the whole batch in each step",
                MINIBATCHES,
                lambda size, **c: reuse_numbers(size=len(c["adv"]), **c),
            ),
            Misconception(
                "the second and the third number are interchanged",
                "First without the clip, then with it.",
                lambda **c: reuse_numbers(**c)[[0, 2, 1, 3, 4, 5]],
            ),
            Misconception(
                "the effective sample size is not divided by the size of the batch",
                SHARE,
                lambda **c: reuse_numbers(**c) * [1, 1, 1, 1, len(c["adv"]), 1],
            ),
            Misconception(
                "the last share is one of the whole batch",
                "The last number is a share of the samples that had lost their gradient.",
                lambda **c: reuse_numbers(of_all=True, **c),
            ),
            Misconception(
                "the number of samples outside instead of their share",
                SHARE,
                lambda **c: reuse_numbers(**c) * [1, 1, 1, len(c["adv"]), 1, 1],
            ),
        ),
    ),
)

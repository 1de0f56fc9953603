"""Exercise 20.7: the mirror step, its update of the logits, its limits, and the poor start."""

from __future__ import annotations

import numpy as np

from companion.exercises.controller import penalized_step
from companion.exercises.exact import alike
from companion.exercises.mirror_descent import (
    advantages,
    escapes,
    gradient,
    limits,
    mirror_step,
    natural,
    over_sum,
    own_bandit,
    rich_start,
    states,
    steps,
    uniform_start,
)
from companion.exercises.part import Misconception, Part
from companion.policy import greedy, softmax

DIVIDED = "As eta goes to 0 the policy must stay where it is."
POLICY_MEAN = "The mean asked for weighs the actions as the old policy takes them."

PARTS = (
    Part(
        id="20-7-a",
        points=2,
        title="The mirror step",
        kind="function",
        name="mirror_step",
        cases=steps,
        reference=mirror_step,
        misconceptions=(
            Misconception(
                "a greedy step instead of the mirror step",
                "That is the limit of large eta: the KL keeps the step from it.",
                lambda pi, q, eta: greedy(q),
            ),
            Misconception(
                "eta divides the action values",
                DIVIDED,
                lambda pi, q, eta: mirror_step(pi, q, 1 / eta),
            ),
            Misconception(
                "the normalization is forgotten",
                "Probabilities sum to 1 in each state.",
                lambda pi, q, eta: pi * np.exp(eta * q),
            ),
            Misconception(
                "the old policy is left out",
                DIVIDED,
                lambda pi, q, eta: softmax(eta * q),
            ),
            Misconception(
                "the exponential is replaced by its first order",
                "It agrees for a small eta only; for a large one probabilities become negative.",
                lambda pi, q, eta: over_sum(pi * (1 + eta * q)),
            ),
            Misconception(
                "the sign of the action values is reversed",
                "Which actions should become more likely?",
                lambda pi, q, eta: mirror_step(pi, -q, eta),
            ),
            Misconception(
                "the arguments of the KL are swapped",
                "Here the new policy comes first in the KL, and with it the logarithm is of p.",
                lambda pi, q, eta: penalized_step(pi, advantages(pi, q), 1 / eta),
            ),
        ),
    ),
    Part(
        id="20-7-b",
        points=2,
        title="The update of the logits",
        kind="function",
        name="logit_change",
        cases=steps,
        reference=lambda pi, q, eta: eta * advantages(pi, q),
        misconceptions=(
            Misconception(
                "the mean under the policy is not zero",
                "The policy comes out right, as one number for all logits of a state is free: here"
                " it is to be chosen.",
                lambda pi, q, eta: eta * q,
            ),
            Misconception(
                "the difference of the log probabilities",
                "It holds the logarithm of Z: what is its mean under the old policy?",
                lambda pi, q, eta: np.log(mirror_step(pi, q, eta) / pi),
            ),
            Misconception(
                "the mean is over the actions alike",
                POLICY_MEAN,
                lambda pi, q, eta: eta * advantages(alike(pi), q),
            ),
            Misconception(
                "the mean is under the new policy",
                POLICY_MEAN,
                lambda pi, q, eta: eta * advantages(mirror_step(pi, q, eta), q),
            ),
            Misconception(
                "a gradient step instead of the natural step",
                "The gradient holds each action's probability as a factor; the mirror step does"
                " not.",
                lambda pi, q, eta: eta * gradient(pi, q),
            ),
            Misconception(
                "eta divides the action values",
                DIVIDED,
                lambda pi, q, eta: advantages(pi, q) / eta,
            ),
            Misconception(
                "eta is left out",
                "A larger step changes the logits more.",
                lambda pi, q, eta: advantages(pi, q),
            ),
        ),
    ),
    Part(
        id="20-7-c",
        points=3,
        title="Both limits of eta",
        kind="function",
        name="limits",
        cases=states,
        reference=limits,
        misconceptions=(
            Misconception(
                "a factor one half is missing in the KL",
                "Expand the KL to second order: its first order vanishes.",
                lambda **c: limits(half=1.0, **c),
            ),
            Misconception(
                "a factor one half too many in the gain",
                "The gain is of first order in the change of the probabilities.",
                lambda **c: limits(half_gain=0.5, **c),
            ),
            Misconception(
                "the second moment instead of the variance",
                "Adding one number to all action values changes nothing: what must the limits do?",
                lambda **c: limits(second_moment=True, **c),
            ),
            Misconception(
                "the actions are averaged without the policy",
                "Actions that the policy hardly takes hardly count.",
                lambda **c: limits(weights=alike, **c),
            ),
            Misconception(
                "the gap to the worst action",
                "Which of the other actions keeps its probability longest?",
                lambda **c: limits(rival=0, **c),
            ),
            Misconception(
                "the best action's value instead of a gap",
                "Adding one number to all action values changes nothing: what must the limits do?",
                lambda pi, q: np.array([*limits(pi, q)[:2], q.max()]),
            ),
            Misconception(
                "the best action's advantage instead of a gap",
                "Take the ratio of two probabilities of the new policy: the old values' mean is not"
                " in it.",
                lambda pi, q: np.array([*limits(pi, q)[:2], advantages(pi, q).max()]),
            ),
        ),
    ),
    Part(
        id="20-7-d",
        points=3,
        title="Leaving the poor start",
        kind="numbers",
        name="numbers",
        cases=own_bandit,
        reference=escapes,
        misconceptions=(
            Misconception(
                "the updates are counted from 1",
                "A start that needs no update counts 0.",
                lambda **c: escapes(counted_from=1, **c),
            ),
            Misconception(
                "the start is on the best arm",
                "Poor means: nearly always the worst arm.",
                lambda **c: escapes(start=rich_start, **c),
            ),
            Misconception(
                "the start is uniform",
                "Poor means: nearly always the worst arm.",
                lambda **c: escapes(start=uniform_start, **c),
            ),
            Misconception(
                "the gradient step lacks the probabilities",
                "Differentiate the expected reward in a logit: a factor is missing.",
                lambda **c: escapes(directions=(natural, advantages), **c),
            ),
            Misconception(
                "the mirror step has the gradient's probabilities",
                "Part b says what the mirror step adds to the logits.",
                lambda **c: escapes(directions=(gradient, gradient), **c),
            ),
            Misconception(
                "eta divides",
                DIVIDED,
                lambda eta, **c: escapes(eta=1 / eta, **c),
            ),
        ),
    ),
)

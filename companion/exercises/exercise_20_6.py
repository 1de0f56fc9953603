"""Exercise 20.6: the KL penalty's step, and the controller of its coefficient in a loop."""

from __future__ import annotations

import numpy as np

from companion.exercises.controller import (
    adapt_beta,
    controlled,
    halved_below_target,
    loops,
    measurements,
    mirror_step,
    no_dead_zone,
    only_doubled,
    own_loop,
    penalized_step,
    penalties,
    reversed_kl,
    reversed_rule,
    states_alike,
    tracking,
    unchanged,
    unsolved_step,
)
from companion.exercises.exact import alike
from companion.exercises.part import Misconception, Part
from companion.policy import greedy

REVERSED = "When the policy has moved too far, should the penalty become stronger or weaker?"
NO_ZONE = "Near the target nothing should change: what would noise in the measured KL do?"
LOWER = "The two thresholds lie at the same ratio above and below the target."
ARGUMENTS = "The data come from the old policy, and the mean is under its actions."
VISITED = "The mean KL is over the states as the old policy visits them."
CARRIED = "An update starts from the policy that the one before has made."

PARTS = (
    Part(
        id="20-6-a",
        points=2,
        title="The update of beta",
        kind="function",
        name="adapt_beta",
        cases=measurements,
        reference=adapt_beta,
        misconceptions=(
            Misconception("doubling and halving are interchanged", REVERSED, reversed_rule),
            Misconception("there is no dead zone", NO_ZONE, no_dead_zone),
            Misconception(
                "beta is halved as soon as the KL is below the target", LOWER, halved_below_target
            ),
            Misconception(
                "the lower threshold is half the target",
                LOWER,
                lambda beta, kl, target: (
                    beta if target / 2 <= kl < target else adapt_beta(beta, kl, target)
                ),
            ),
            Misconception(
                "the thresholds are a factor 2 from the target",
                "The factor of the thresholds and that of beta are two different numbers.",
                lambda **c: adapt_beta(zone=2.0, **c),
            ),
            Misconception(
                "beta changes by the factor of the thresholds",
                "The factor of the thresholds and that of beta are two different numbers.",
                lambda **c: adapt_beta(factor=1.5, **c),
            ),
            Misconception("beta never falls", "And when the policy hardly moves?", only_doubled),
            Misconception(
                "beta is multiplied by the KL over the target",
                "The rule knows three answers only.",
                lambda beta, kl, target: beta * kl / target,
            ),
            Misconception(
                "the thresholds are not relative to the target",
                "A KL is large or small beside the target.",
                lambda beta, kl, target: adapt_beta(beta, kl, 1.0),
            ),
        ),
    ),
    Part(
        id="20-6-b",
        points=3,
        title="The penalized step",
        kind="function",
        name="penalized_step",
        cases=penalties,
        reference=penalized_step,
        misconceptions=(
            Misconception(
                "the arguments of the KL are swapped",
                "That is the mirror step, the maximizer with the new policy first in the KL.",
                mirror_step,
            ),
            Misconception(
                "beta multiplies the advantages",
                "A larger penalty must make a smaller step.",
                lambda pi, adv, beta: penalized_step(pi, adv, 1 / beta),
            ),
            Misconception(
                "the probabilities are divided by their sum",
                "Dividing by the sum changes the form: which level makes the sum right by itself?",
                unsolved_step,
            ),
            Misconception(
                "the step of first order",
                "For a large beta it is near the maximizer; for a small one it leaves the simplex.",
                lambda pi, adv, beta: pi * (1 + adv / beta),
            ),
            Misconception(
                "the penalty is left out",
                "That is the greedy policy.",
                lambda pi, adv, beta: greedy(adv),
            ),
            Misconception(
                "the sign of the advantages is reversed",
                "Which actions should become more likely?",
                lambda pi, adv, beta: penalized_step(pi, -adv, beta),
            ),
            Misconception(
                "the old policy is taken for uniform",
                "The penalty is on the distance from the old policy, not from chance.",
                lambda pi, adv, beta: penalized_step(alike(pi), adv, beta),
            ),
        ),
    ),
    Part(
        id="20-6-c",
        points=3,
        title="The loop",
        kind="function",
        name="controlled",
        cases=loops,
        reference=controlled,
        misconceptions=(
            Misconception(
                "doubling and halving are interchanged",
                REVERSED,
                lambda **c: controlled(rule=reversed_rule, **c),
            ),
            Misconception(
                "there is no dead zone",
                NO_ZONE,
                lambda **c: controlled(rule=no_dead_zone, **c),
            ),
            Misconception(
                "beta never falls",
                "And when the policy hardly moves?",
                lambda **c: controlled(rule=only_doubled, **c),
            ),
            Misconception(
                "beta is not adapted",
                "Each KL decides on the beta of the next update.",
                lambda **c: controlled(rule=unchanged, **c),
            ),
            Misconception(
                "beta is reported after it was adapted",
                "Asked for is the beta that the update used.",
                lambda **c: controlled(reported=1, **c),
            ),
            Misconception(
                "the arguments of the KL are swapped",
                ARGUMENTS,
                lambda **c: controlled(divergence=reversed_kl, **c),
            ),
            Misconception(
                "the states count alike in the mean KL",
                VISITED,
                lambda **c: controlled(weights=states_alike, **c),
            ),
            Misconception(
                "the states are weighted by the unnormalized visitation",
                "The weights of a mean sum to 1.",
                lambda **c: controlled(weights=lambda rho: rho, **c),
            ),
            Misconception(
                "every update starts from the first policy",
                CARRIED,
                lambda **c: controlled(carried=False, **c),
            ),
        ),
    ),
    Part(
        id="20-6-d",
        points=2,
        title="A fixed beta on your MDP",
        kind="numbers",
        name="numbers",
        cases=own_loop,
        reference=tracking,
        misconceptions=(
            Misconception(
                "the KLs are in nats",
                "Divide them by the target.",
                lambda **c: c["target"] * tracking(**c),
            ),
            Misconception(
                "the arguments of the KL are swapped",
                ARGUMENTS,
                lambda **c: tracking(divergence=reversed_kl, **c),
            ),
            Misconception(
                "the states count alike in the mean KL",
                VISITED,
                lambda **c: tracking(weights=states_alike, **c),
            ),
            Misconception(
                "every update starts from the first policy",
                CARRIED,
                lambda **c: tracking(carried=False, **c),
            ),
            Misconception(
                "the update before the last is taken for the last",
                "The first update is number 1.",
                lambda **c: tracking(last=-2, **c),
            ),
            Misconception(
                "a mirror step instead of the penalized step",
                "Its maximizer is that of the other KL: see part b.",
                lambda **c: tracking(step=mirror_step, **c),
            ),
            Misconception(
                "the last two numbers are interchanged",
                "First the fixed beta, then the controller.",
                lambda **c: np.asarray(tracking(**c))[[0, 1, 3, 2]],
            ),
        ),
    ),
)

"""Exercise 20.3: the KL's gradient and Hessian at the old policy, TRPO's step and its gain."""

from __future__ import annotations

from typing import Any

import numpy as np

from companion.exercises import cases
from companion.exercises.part import Misconception, Part
from companion.exercises.softmax_linear import (
    assembled,
    beside,
    compared,
    diagonal,
    fisher,
    kl_gradient,
    length_at,
    natural_step,
    predicted_gains,
    reversed_kl_gradient,
    scaled,
)
from companion.policy import softmax


def gains(length: Any) -> Any:
    """Return part d with another length(F, d, delta) of the directions."""
    return lambda F, g, directions, delta: [length(F, d, delta) * (g @ d) for d in directions]


HALF = "The quadratic KL is half of d^T F d: solve for the length again."
ROOT = "The KL grows with the square of the length: solve for the length, not for its square."

PARTS = (
    Part(
        id="20-3-a",
        points=2,
        title="The KL's gradient",
        kind="function",
        name="kl_gradient",
        cases=cases.policies_and_logits,
        reference=kl_gradient,
        misconceptions=(
            Misconception(
                "the arguments of the KL are swapped",
                "The constraint weighs the log ratio by the old policy, which does not depend on"
                " the logits.",
                reversed_kl_gradient,
            ),
            Misconception(
                "the sign is reversed",
                "In which direction of the logits does the KL grow: towards the old policy, or"
                " away from it?",
                lambda **c: -kl_gradient(**c),
            ),
            Misconception(
                "the sum over states instead of the mean",
                "The constraint is on the mean KL.",
                lambda **c: len(c["old"]) * kl_gradient(**c),
            ),
            Misconception(
                "the derivative is with respect to the probabilities",
                "The parameters are the logits, and the chain rule leads through the softmax.",
                lambda old, logits: -old / softmax(logits) / len(old),
            ),
            Misconception(
                "the logits are taken for probabilities",
                "Turn them into a policy first.",
                lambda old, logits: (logits - old) / len(old),
            ),
            Misconception(
                "the difference of the log probabilities",
                "Differentiate the log of the softmax in one logit, then sum over the actions.",
                lambda old, logits: np.log(softmax(logits) / old) / len(old),
            ),
        ),
    ),
    Part(
        id="20-3-b",
        points=3,
        title="The Fisher matrix",
        kind="function",
        name="fisher",
        cases=cases.features,
        reference=fisher,
        misconceptions=(
            Misconception(
                "the outer product of the probabilities is left out",
                "The score of a softmax is the taken action's unit vector minus something: square"
                " all of it.",
                lambda features, p: assembled(features, diagonal(p)),
            ),
            Misconception(
                "the outer product of the probabilities is added",
                "Adding one number to all logits changes nothing: what must F make of it?",
                lambda features, p: 2 * assembled(features, diagonal(p)) - fisher(features, p),
            ),
            Misconception(
                "the sum over states instead of the mean",
                "F is the Hessian of the mean KL.",
                lambda features, p: len(p) * fisher(features, p),
            ),
            Misconception(
                "the actions are averaged without the policy",
                "The expectation of the squared score is over actions that the policy takes.",
                lambda features, p: assembled(
                    features,
                    (np.eye(p.shape[1]) - p[:, :, None] - p[:, None, :]) / p.shape[1]
                    + p[:, :, None] * p[:, None, :],
                ),
            ),
            Misconception(
                "the parameters are in another order",
                "W.ravel() runs through the actions of the first feature, then of the second.",
                lambda features, p: assembled(
                    features, diagonal(p) - p[:, :, None] * p[:, None, :], order="aibj"
                ),
            ),
            Misconception(
                "the features are averaged before they are multiplied",
                "The mean is over the states' matrices, not over what these are made of.",
                lambda features, p: assembled(
                    np.broadcast_to(features.mean(axis=0), features.shape),
                    diagonal(p) - p[:, :, None] * p[:, None, :],
                ),
            ),
        ),
    ),
    Part(
        id="20-3-c",
        points=2,
        title="The step",
        kind="function",
        name="natural_step",
        cases=cases.quadratics,
        reference=natural_step,
        misconceptions=(
            Misconception(
                "a factor 2 is missing",
                HALF,
                lambda **c: natural_step(**c) / np.sqrt(2),
            ),
            Misconception(
                "the square root is missing",
                ROOT,
                lambda F, g, delta: 2 * delta / (g @ np.linalg.solve(F, g)) * np.linalg.solve(F, g),
            ),
            Misconception(
                "a gradient step instead of the natural step",
                "It has the right KL, but not the largest gain: derive the direction from the"
                " Lagrangian.",
                lambda F, g, delta: scaled(g, F, delta),
            ),
            Misconception(
                "a gradient step of a Euclidean length",
                "The length of a step is measured by F, and its direction follows from that.",
                lambda F, g, delta: length_at(g @ g, delta) * g,
            ),
            Misconception(
                "the natural direction with a Euclidean length",
                "The direction is right; its length is measured by F.",
                lambda F, g, delta: (
                    length_at(np.linalg.solve(F, g) @ np.linalg.solve(F, g), delta)
                    * np.linalg.solve(F, g)
                ),
            ),
            Misconception(
                "the natural direction is not scaled",
                "It must be scaled so that the quadratic KL is delta.",
                lambda F, g, delta: np.linalg.solve(F, g),
            ),
            Misconception(
                "the length is computed with F instead of its inverse",
                "Insert the direction F^-1 g into d^T F d.",
                lambda F, g, delta: length_at(g @ F @ g, delta) * np.linalg.solve(F, g),
            ),
            Misconception(
                "the gradient is multiplied by F, not by its inverse",
                "A direction in which the KL grows fast should be used less.",
                lambda F, g, delta: scaled(F @ g, F, delta),
            ),
        ),
    ),
    Part(
        id="20-3-d",
        points=2,
        title="The gain of any direction",
        kind="function",
        name="predicted_gains",
        cases=cases.directions,
        reference=predicted_gains,
        misconceptions=(
            Misconception(
                "a factor 2 is missing",
                HALF,
                lambda **c: predicted_gains(**c) / np.sqrt(2),
            ),
            Misconception(
                "the square root is missing",
                ROOT,
                gains(lambda F, d, delta: 2 * delta / (d @ F @ d)),
            ),
            Misconception(
                "the directions have a Euclidean length",
                "All directions are compared at the same quadratic KL.",
                gains(lambda F, d, delta: length_at(d @ d, delta)),
            ),
            Misconception(
                "the directions are not scaled",
                "All directions are compared at the same quadratic KL.",
                gains(lambda F, d, delta: 1.0),
            ),
            Misconception(
                "the curvature is computed with the inverse of F",
                "For the natural direction d^T F d is g^T F^-1 g; for another it is d^T F d.",
                gains(lambda F, d, delta: length_at(d @ np.linalg.solve(F, d), delta)),
            ),
            Misconception(
                "every direction gets the natural step's gain",
                "That is the largest gain of all; each direction has its own.",
                lambda F, g, directions, delta: (
                    g @ natural_step(F, g, delta) * np.ones(len(directions))
                ),
            ),
        ),
    ),
    Part(
        id="20-3-e",
        points=2,
        title="Natural against gradient step",
        kind="numbers",
        name="compared",
        cases=cases.own_quadratic,
        reference=compared,
        misconceptions=(
            Misconception(
                "a factor 2 is missing",
                HALF,
                lambda F, g, delta: compared(F, g, delta / 2),
            ),
            Misconception(
                "the gradient step has the natural step's Euclidean length",
                "The two are compared at the same quadratic KL.",
                lambda F, g, delta: beside(
                    g @ natural_step(F, g, delta),
                    np.linalg.norm(g) * np.linalg.norm(natural_step(F, g, delta)),
                ),
            ),
            Misconception(
                "the share is upside down",
                "Divide the gradient step's gain by the natural step's: the larger one below.",
                lambda **c: compared(**c) ** [1, 1, -1],
            ),
            Misconception(
                "the square root is missing",
                ROOT,
                lambda F, g, delta: beside(
                    2 * delta,
                    2 * delta * (g @ g) / (g @ F @ g),
                ),
            ),
            Misconception(
                "the gradient is multiplied by F, not by its inverse",
                "A direction in which the KL grows fast should be used less.",
                lambda F, g, delta: (lambda gain: [gain[0], gain[1], gain[1] / gain[0]])(
                    predicted_gains(F, g, np.array([F @ g, g]), delta)
                ),
            ),
        ),
    ),
)

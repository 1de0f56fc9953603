"""Each student's own numbers, derived from the student's id."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from companion.mdp import TabularMDP, expected_return
from companion.policy import FloatArray, softmax

PLACEHOLDER = "your-id"  # what stands in place of the id as released
# Of so many pairs of policies the one is taken whose returns differ most.
PAIRS = 16
# Standard deviation of a bandit's rewards around their means, which differ by about 1.
NOISE = 1.5


def generator(student: str, *purpose: str) -> np.random.Generator:
    """Return the random numbers that belong to a student's id and a purpose.

    The id counts without surrounding spaces and without upper and lower case.

    Args:
        student: the student's id.
        purpose: what the numbers are for, in any number of words.

    Raises:
        ValueError: the id is not a string, or empty.

    >>> generator("Ada ", "mdp").random() == generator("ada", "mdp").random()
    True
    """
    if not isinstance(student, str) or not student.strip():
        raise ValueError(f"student must be your id, a string such as 's123'; got {student!r}")
    text = "\0".join([student.strip().casefold(), *purpose])
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng(int.from_bytes(digest))


def own_mdp(student: str) -> TabularMDP:
    """Return the student's own MDP: 4 or 5 states, 2 or 3 actions.

    >>> own_mdp("ada").r.shape
    (4, 2)
    """
    return draw_mdp(generator(student, "mdp"))


def own_policies(student: str) -> tuple[FloatArray, FloatArray]:
    """Return two policies (old, new) for the student's own MDP, each of shape (S, A)."""
    return draw_policies(own_mdp(student), generator(student, "policies"))


class Quadratic(NamedTuple):
    """A Fisher matrix F (n, n) and a surrogate gradient g (n,)."""

    F: FloatArray
    g: FloatArray


def own_quadratic(student: str) -> Quadratic:
    """Return the student's own Fisher matrix, which can be inverted, and gradient."""
    return draw_quadratic(generator(student, "quadratic"), size=4)


class Batch(NamedTuple):
    """What a softmax-linear policy has collected: its logits are features @ W."""

    features: FloatArray  # (N, d)
    W: FloatArray  # (d, A)
    actions: NDArray[np.int64]  # (N,)
    adv: FloatArray  # (N,)


def own_batch(student: str) -> Batch:
    """Return the student's own batch: 40 states of 4 features, and a policy of 3 actions."""
    return draw_batch(generator(student, "batch"), n=40, d=4)


class Bandit(NamedTuple):
    """What a softmax-linear policy has collected from a contextual bandit, and the truth."""

    features: FloatArray  # (N, d) of the contexts
    W: FloatArray  # (d, A), of the policy: its logits are features @ W
    means: FloatArray  # (N, A) expected rewards, which no agent would know
    actions: NDArray[np.int64]  # (N,)
    adv: FloatArray  # (N,) the noisy reward minus its expectation under the policy


def own_bandit(student: str) -> Bandit:
    """Return the student's own bandit: 40 contexts of 4 features, and a policy of 3 actions."""
    return draw_bandit(generator(student, "contextual bandit"), n=40, d=4)


def own_probabilities(student: str) -> FloatArray:
    """Return the student's own policy in one state: five actions, one common and one rare.

    >>> float(own_probabilities("ada").max()) > 0.8
    True
    """
    return draw_probabilities(generator(student, "old probabilities"))


def draw_mdp(rng: np.random.Generator) -> TabularMDP:
    """Draw a small MDP of numbers that are short to print; half of them have an absorbing state."""
    n_actions = int(rng.integers(2, 4))
    n_states = int(rng.integers(4, 6))
    P = hundredths(rng.random((n_states, n_actions, n_states)) ** 4)
    r = np.round(4 * rng.random((n_states, n_actions)) - 1, 1)
    start = rng.random(n_states) ** 2
    if rng.random() < 0.5:
        P[-1], r[-1], start[-1] = np.eye(n_states)[-1], 0, 0
    gamma = (0.7, 0.8, 0.9)[int(rng.integers(3))]
    return TabularMDP(P, r, gamma, hundredths(start))


def draw_policies(mdp: TabularMDP, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw two policies that take every action, and whose returns differ."""
    pairs = hundredths(0.1 + rng.random((PAIRS, 2, *mdp.shape)) ** 2)
    old, new = pairs[np.abs(np.diff(expected_return(mdp, pairs))).argmax()]
    return old, new


def draw_probabilities(rng: np.random.Generator) -> FloatArray:
    """Draw probabilities, in thousandths, of one common, one rare and three other actions."""
    rare = 0.005 + 0.01 * rng.random(1)
    rest = np.round(np.append(rare, 0.02 + 0.04 * rng.random(3)), 3)
    return np.round(rng.permutation(np.append(rest, 1 - rest.sum())), 3)


def draw_quadratic(rng: np.random.Generator, size: int) -> Quadratic:
    """Draw a positive definite matrix with eigenvalues of different size, and a vector."""
    factor = uniform(rng, (size, size)) * np.geomspace(2.0, 0.5, size)
    F = np.round(factor @ factor.T + 0.1 * np.eye(size), 2)
    return Quadratic(F, np.round(uniform(rng, size), 2))


def draw_batch(rng: np.random.Generator, n: int, d: int, n_actions: int = 3) -> Batch:
    """Draw features of different size, weights, actions from the policy, and advantages."""
    features = np.round(uniform(rng, (n, d)) * np.geomspace(2.0, 0.5, d), 2)
    W = np.round(uniform(rng, (d, n_actions)), 2)
    actions = draw_actions(softmax(features @ W), rng)
    return Batch(features, W, actions, np.round(2 * uniform(rng, n), 2))


def draw_bandit(rng: np.random.Generator, n: int, d: int, n_actions: int = 3) -> Bandit:
    """Draw contexts, a policy that is not too sure, linear expected rewards, and noisy rewards."""
    features = np.round(uniform(rng, (n, d)) * np.geomspace(2.0, 0.5, d), 2)
    W = np.round(0.6 * uniform(rng, (d, n_actions)), 2)
    means = np.round(features @ uniform(rng, (d, n_actions)), 2)
    p = softmax(features @ W)
    actions = draw_actions(p, rng)
    reward = means[np.arange(n), actions] + NOISE * rng.standard_normal(n)
    adv = np.round(reward - (p * means).sum(axis=1), 2)
    return Bandit(features, W, means, actions, np.where(adv == 0, 0.01, adv))  # each has a sign


def draw_actions(p: FloatArray, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one action from each row of probabilities."""
    below = p.cumsum(axis=1)[:, :-1] < rng.random((len(p), 1))
    actions: NDArray[np.int64] = below.sum(axis=1)
    return actions


def uniform(rng: np.random.Generator, shape: int | tuple[int, ...]) -> FloatArray:
    """Draw numbers between -1 and 1."""
    numbers: FloatArray = 2 * rng.random(shape) - 1
    return numbers


def hundredths(weights: FloatArray) -> FloatArray:
    """Return probabilities along the last axis, proportional to weights, in whole hundredths."""
    rows = np.round(weights / weights.sum(axis=-1, keepdims=True), 2)
    rest = 1 - rows.sum(axis=-1, keepdims=True)
    largest = np.arange(rows.shape[-1]) == rows.argmax(axis=-1)[..., None]
    rounded: FloatArray = np.round(rows + rest * largest, 2)
    return rounded

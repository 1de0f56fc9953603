"""The penalized step and the controller of beta, and the cases of exercise 20.6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from companion.exercises import own
from companion.exercises.cases import action_probabilities, as_lists, world
from companion.exercises.exact import advantage, visitation
from companion.exercises.own import draw_mdp, draw_policies, uniform
from companion.policy import FloatArray, kl

NEWTON_STEPS = 12
TARGET = 0.02  # nats
BETA = 4.0  # where it is not the wrong one on purpose
UPDATES = 8
SCALE = 10.0  # of the rewards, the second time

Rule = Callable[[float, float, float], float]


def measurements(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw a beta and a target each, and a KL in every region of the rule."""
    cases = []
    for factor in (0.3, 0.6, 0.8, 1.2, 1.7, 3.0):
        target = float(rng.integers(5, 40) / 1000)
        kl = round(factor * target * (1 + 0.05 * rng.random()), 6)
        cases.append({"beta": float(rng.integers(2, 40) / 4), "kl": kl, "target": target})
    return cases


def penalties(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw a policy, its advantages and a penalty coefficient."""
    cases = []
    for n, beta in ((2, 0.5), (3, 1.5), (4, 4.0)):
        pi = action_probabilities(rng, n)
        q = np.round(3 * uniform(rng, pi.shape), 1)
        adv = q - (pi * q).sum(axis=1, keepdims=True)
        cases.append(as_lists({"pi": pi, "adv": np.round(adv, 4), "beta": beta}))
    return cases


def loops(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw MDPs and policies, and a first beta that is far too small, too large, or about right."""
    cases = []
    for beta in (0.5, 20.0, BETA):
        mdp = draw_mdp(rng)
        pi, _ = draw_policies(mdp, rng)
        case = as_lists(world(mdp) | {"pi": pi})
        cases.append(case | {"beta": beta, "target": TARGET, "updates": UPDATES})
    return cases


def own_loop(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the student's own MDP and first policy, and how they are to be run."""
    pi, _ = own.own_policies(student)
    case = as_lists(world(own.own_mdp(student)) | {"pi": pi})
    return [case | {"beta": BETA, "target": TARGET, "updates": UPDATES, "scale": SCALE}]


def adapt_beta(
    beta: float, kl: float, target: float, *, zone: float = 1.5, factor: float = 2.0
) -> float:
    """Return the next beta: larger above the zone around the target, smaller below it."""
    if kl > zone * target:
        return factor * beta
    return beta / factor if kl < target / zone else beta


def no_dead_zone(beta: float, kl: float, target: float) -> float:
    """Return the next beta, which always changes."""
    return adapt_beta(beta, kl, target, zone=1.0)


def reversed_rule(beta: float, kl: float, target: float) -> float:
    """Return the next beta, smaller where it should be larger."""
    return adapt_beta(beta, kl, target, factor=0.5)


def only_doubled(beta: float, kl: float, target: float) -> float:
    """Return the next beta, which never falls."""
    return max(beta, adapt_beta(beta, kl, target))


def halved_below_target(beta: float, kl: float, target: float) -> float:
    """Return the next beta, with a dead zone above the target only."""
    return beta / 2 if kl < target else adapt_beta(beta, kl, target)


def unchanged(beta: float, kl: float, target: float) -> float:
    """Return the same beta."""
    return beta


def penalized_step(pi: FloatArray, adv: FloatArray, beta: float) -> FloatArray:
    """Return the policy that maximizes sum_a p(a) adv(a) - beta KL(pi || p) in each state.

    It is beta pi / (level - adv), with the level above all advantages at which it sums to 1.
    """
    # Newton's method on 1 / sum, which is concave and nearly straight, from below the root.
    level = (adv + beta * pi).max(axis=1, keepdims=True)
    for _ in range(NEWTON_STEPS):
        terms = beta * pi / (level - adv)
        total = terms.sum(axis=1, keepdims=True)
        level = level + total * (total - 1) / (terms / (level - adv)).sum(axis=1, keepdims=True)
    stepped: FloatArray = beta * pi / (level - adv)
    return stepped


def unsolved_step(pi: FloatArray, adv: FloatArray, beta: float) -> FloatArray:
    """Return beta pi / (level - adv) over its sum, at a level that is not solved for."""
    return normalized(beta * pi / (adv.max(axis=1, keepdims=True) + beta - adv))


def normalized(weights: FloatArray) -> FloatArray:
    """Return weights over their sum, state by state."""
    pi: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return pi


def mirror_step(pi: FloatArray, adv: FloatArray, beta: float) -> FloatArray:
    """Return the maximizer with the other KL, pi exp(adv / beta) / Z."""
    return normalized(pi * np.exp((adv - adv.max(axis=1, keepdims=True)) / beta))


def reversed_kl(pi: FloatArray, new: FloatArray) -> FloatArray:
    """Return KL(new || pi) in each state."""
    return kl(new, pi)


def states_alike(rho: FloatArray) -> FloatArray:
    """Return weights of the states that are all the same."""
    return np.full_like(rho, 1 / len(rho))


def controlled(
    P: Any,
    r: Any,
    gamma: float,
    mu: Any,
    pi: Any,
    beta: float,
    target: float,
    updates: int,
    *,
    step: Callable[..., FloatArray] = penalized_step,
    rule: Rule = adapt_beta,
    divergence: Callable[..., Any] = kl,
    weights: Callable[[Any], Any] = lambda rho: rho / rho.sum(),
    carried: bool = True,
    reported: int = 0,
) -> FloatArray:
    """Return the KL of each update and the beta that it used, shape (2, updates), or a variant."""
    kls, betas = [], [beta]
    for _ in range(updates):
        new = step(pi, advantage(P, r, gamma, pi), betas[-1])
        kls.append(divergence(pi, new) @ weights(visitation(P, gamma, mu, pi)))
        betas.append(rule(betas[-1], kls[-1], target))
        pi = new if carried else pi
    return np.array([kls, betas[reported : reported + updates]])


def tracking(r: Any, scale: float, target: float, *, last: int = -1, **c: Any) -> FloatArray:
    """Return four KLs over the target: two first ones, and two last ones.

    The first updates have rewards r and scale r; the last ones a fixed beta and the controller.
    """
    scaled = controlled(r=scale * r, target=target, **c)[0]
    fixed = controlled(r=r, target=target, rule=unchanged, **c)[0]
    steered = controlled(r=r, target=target, **c)[0]
    return np.array([fixed[0], scaled[0], fixed[last], steered[last]]) / target

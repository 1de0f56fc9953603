"""The cases of exercises 20.1 to 20.4, drawn as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from companion.exercises import exact, own
from companion.exercises.own import draw_mdp, draw_policies, uniform
from companion.mdp import TabularMDP

Draw = Callable[[str, np.random.Generator], list[dict[str, Any]]]

N_CASES = 3
N_SAMPLES = 10
N_ACTIONS = 3
LINE = [0.002, 0.005, 0.01, 0.02]  # weights of the new policy in part 20-2-e
DELTA = 0.01  # nats, where the numbers are the student's own
DAMPING = 0.1


def as_lists(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return arrays as nested lists; numbers stay numbers."""
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in arrays.items()}


def world(mdp: TabularMDP) -> dict[str, Any]:
    """Return the parts of an MDP by name."""
    return {"P": mdp.P, "r": mdp.r, "gamma": mdp.gamma, "mu": mdp.mu}


def one_policy(*keys: str) -> Draw:
    """Return the draw of some MDPs, of which a part takes these keys, with one policy each."""

    def draw(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
        pairs = two_policies(student, rng)
        return [{key: case[key] for key in keys} | {"pi": case["old"]} for case in pairs]

    return draw


def two_policies(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw MDPs with a pair of policies each."""
    cases = []
    for mdp in [draw_mdp(rng) for _ in range(N_CASES)]:
        old, new = draw_policies(mdp, rng)
        cases.append(as_lists(world(mdp) | {"old": old, "new": new}))
    return cases


def own_pair(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the student's own MDP and policies."""
    old, new = own.own_policies(student)
    return [as_lists(world(own.own_mdp(student)) | {"old": old, "new": new})]


def samples(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw samples, as the old policy might have visited them, with estimated advantages."""
    cases = []
    for mdp in [draw_mdp(rng) for _ in range(N_CASES)]:
        old, new = draw_policies(mdp, rng)
        states = rng.integers(mdp.shape[0], size=N_SAMPLES)
        actions = own.draw_actions(old[states], rng)
        adv = np.round(3 * uniform(rng, N_SAMPLES), 1)
        case = {"states": states, "actions": actions, "adv": adv, "old": old, "new": new}
        cases.append(as_lists(case | {"gamma": mdp.gamma}))
    return cases


def logits(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw an old policy's visitation and advantages, and the logits of another policy."""
    cases = []
    for mdp in [draw_mdp(rng) for _ in range(N_CASES)]:
        old, new = draw_policies(mdp, rng)
        rho = exact.visitation(mdp.P, mdp.gamma, mdp.mu, old)
        adv = exact.advantage(mdp.P, mdp.r, mdp.gamma, old)
        case = {"rho": rho, "adv": adv, "logits": np.log(new) + uniform(rng, (len(rho), 1))}
        cases.append({key: np.round(array, 2).tolist() for key, array in case.items()})
    return cases


def lines(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw MDPs with a pair of policies and weights of the new one."""
    weights = [[0.2, 0.6], [0.1, 0.5, 0.9], [0.3, 0.7]]
    drawn = two_policies(student, rng)
    return [case | {"alphas": alphas} for case, alphas in zip(drawn, weights, strict=True)]


def own_line(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the student's own MDP and policies, and the weights of part 20-2-e."""
    return [case | {"alphas": LINE} for case in own_pair(student, rng)]


def action_probabilities(rng: np.random.Generator, n: int) -> Any:
    """Draw the action probabilities of n states."""
    return own.hundredths(0.1 + rng.random((n, N_ACTIONS)) ** 2)


def policies_and_logits(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw old probabilities and new logits, in 4 to 6 states."""
    return [
        as_lists(
            {
                "old": action_probabilities(rng, n),
                "logits": np.round(2 * uniform(rng, (n, N_ACTIONS)), 2),
            }
        )
        for n in (4, 5, 6)
    ]


def features(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw two features and the action probabilities of 4 to 6 states."""
    return [
        as_lists(
            {
                "features": np.round(2 * uniform(rng, (n, 2)), 2),
                "p": action_probabilities(rng, n),
            }
        )
        for n in (4, 5, 6)
    ]


def quadratics(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw Fisher matrices, gradients and radii."""
    radii = {3: 0.01, 4: 0.02, 5: 0.05}
    return [
        as_lists(own.draw_quadratic(rng, size)._asdict() | {"delta": delta})
        for size, delta in radii.items()
    ]


def directions(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw Fisher matrices, gradients and radii, with two directions each."""
    return [
        case | {"directions": np.round(uniform(rng, (2, len(case["g"]))), 1).tolist()}
        for case in quadratics(student, rng)
    ]


def own_quadratic(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the student's own Fisher matrix and gradient."""
    return [as_lists(own.own_quadratic(student)._asdict() | {"delta": DELTA})]


def products(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw features, probabilities, a vector of parameters and a damping."""
    dampings = (0.1, 0.3, 0.5)
    return [
        case | {"v": np.round(uniform(rng, 2 * N_ACTIONS), 1).tolist(), "damping": damping}
        for case, damping in zip(features(student, rng), dampings, strict=True)
    ]


def linear_systems(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw linear systems, each with fewer iterations than unknowns."""
    iterations = {4: 2, 5: 3, 6: 4}
    drawn = {size: own.draw_quadratic(rng, size) for size in iterations}
    return [
        {"A": F.tolist(), "b": g.tolist(), "iterations": iterations[size]}
        for size, (F, g) in drawn.items()
    ]


def moves(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw batches and new parameters at some distance."""
    cases = []
    for n in (6, 8, 10):
        batch = own.draw_batch(rng, n, d=2)
        new_W = np.round(batch.W + 1.5 * uniform(rng, batch.W.shape), 2)
        cases.append(as_lists(batch._asdict() | {"new_W": new_W}))
    return cases


def searches(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw what a line search measures at 1, 1/2, 1/4, ..., and where it must stop or give up."""
    delta = 0.01

    def case(gains: list[float], kls: list[float]) -> dict[str, Any]:
        near = 1 + 0.3 * uniform(rng, (2, len(gains)))
        return {
            "gains": np.round(np.array(gains) * near[0], 4).tolist(),
            "kls": np.round(np.minimum(kls, np.array(kls) * near[1]), 4).tolist(),
            "delta": delta,
        }

    return [
        case([0.02, 0.05, 0.03, 0.01], [0.008, 0.006, 0.003, 0.001]),
        case([0.09, 0.06, 0.03, 0.02, 0.01], [0.05, 0.03, 0.009, 0.004, 0.002]),
        case([-0.04, -0.02, 0.03, 0.02], [0.009, 0.007, 0.005, 0.003]),
        case([0.05, 0.04, -0.01, -0.02], [0.04, 0.02, 0.008, 0.006]),
        case([0.0, 0.0, 0.02, 0.01], [0.008, 0.006, 0.004, 0.002]),
        {"gains": [0.06, 0.03, 0.01], "kls": [0.03, delta, 0.004], "delta": delta},
    ]


def own_batch(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the student's own batch, with the radius and the damping of the chapter's example."""
    batch = own.own_batch(student)
    return [as_lists(batch._asdict() | {"delta": DELTA, "damping": DAMPING})]

"""Exercise 20.1: the performance-difference lemma, both sides by own code."""

from __future__ import annotations

from typing import Any

import numpy as np

from companion.exercises import cases, exact
from companion.exercises.exact import action_values, advantage, contributions, visitation
from companion.exercises.part import Misconception, Part


# The misconceptions below take the world w (P, r, gamma, mu) apart from the policies.
def gain(old: Any, new: Any, **w: Any) -> float:
    """Return J(new) - J(old)."""
    return exact.expected_return(pi=new, **w) - exact.expected_return(pi=old, **w)


def terms(old: Any, new: Any, **w: Any) -> Any:
    """Return each state's term of the lemma's right side."""
    return contributions(states=new, actions=new, compared=old, **w)


def sides(old: Any, new: Any, **w: Any) -> list[float]:
    """Return both sides of the lemma."""
    return [gain(old, new, **w), terms(old, new, **w).sum()]


LOOK_AT_STATES = (
    "That is the surrogate. The lemma takes the states from one of the two policies: see in the"
    " proof whose trajectory is followed."
)
LOOK_AT_VALUES = (
    "In the proof the values that cancel along the trajectory are those of the other policy."
)
LOOK_AT_ACTIONS = "What is the mean of a policy's advantages under its own actions?"
LOOK_AT_MASS = "rho is no distribution: its mass is gamma^0 + gamma^1 + ..., a factor is missing."

PARTS = (
    Part(
        id="20-1-a",
        points=2,
        title="Visitation",
        kind="function",
        name="visitation",
        cases=cases.one_policy("P", "gamma", "mu"),
        reference=visitation,
        misconceptions=(
            Misconception(
                "the visitation is normalized to sum 1",
                LOOK_AT_MASS,
                lambda **c: (1 - c["gamma"]) * visitation(**c),
            ),
            Misconception(
                "the transition matrix is not transposed",
                "Values look forward from a state, visitation flows into it: write out one entry"
                " of rho, and see over which index of P_pi its sum runs.",
                lambda P, gamma, mu, pi: np.linalg.solve(
                    np.eye(len(mu)) - gamma * exact.transitions(P, pi), mu
                ),
            ),
            Misconception(
                "the sum starts at the first transition",
                "The state at time 0 is visited too.",
                lambda **c: visitation(**c) - c["mu"],
            ),
            Misconception(
                "the discount is one power too high",
                "The visit at time 0 has the weight gamma^0.",
                lambda **c: c["gamma"] * visitation(**c),
            ),
            Misconception(
                "the actions are averaged without the policy",
                "P_pi weighs the transitions of each action by its probability.",
                lambda **c: visitation(**c | {"pi": exact.alike(c["pi"])}),
            ),
            Misconception(
                "the start distribution is not used",
                "Trajectories start in the states of mu, not in every state alike.",
                lambda **c: visitation(**c | {"mu": exact.alike(c["mu"])}),
            ),
        ),
    ),
    Part(
        id="20-1-b",
        points=2,
        title="Advantage",
        kind="function",
        name="advantage",
        cases=cases.one_policy("P", "r", "gamma"),
        reference=advantage,
        misconceptions=(
            Misconception(
                "action values instead of advantages",
                "An advantage compares an action with what the policy does on average.",
                action_values,
            ),
            Misconception(
                "the sign is reversed",
                "An action better than the policy's average has a positive advantage.",
                lambda **c: -advantage(**c),
            ),
            Misconception(
                "the step's own reward is left out",
                "An action is worth its reward and the discounted value of where it leads.",
                lambda **c: advantage(**c) - c["r"],
            ),
            Misconception(
                "the next value is not discounted",
                "It is earned one step later.",
                lambda P, r, gamma, pi: (
                    advantage(P, r, gamma, pi) + (1 - gamma) * P @ exact.values(P, r, gamma, pi)
                ),
            ),
            Misconception(
                "the baseline averages the actions without the policy",
                "v(s) is the mean of q(s,a) over the actions as the policy takes them.",
                lambda **c: action_values(**c) - action_values(**c).mean(axis=1, keepdims=True),
            ),
            Misconception(
                "the baseline is the best action's value",
                "The comparison is with the policy's average; advantages may be positive.",
                lambda **c: action_values(**c) - action_values(**c).max(axis=1, keepdims=True),
            ),
        ),
    ),
    Part(
        id="20-1-c",
        points=3,
        title="Both sides of the lemma",
        kind="function",
        name="sides",
        cases=cases.two_policies,
        reference=sides,
        misconceptions=(
            Misconception(
                "the right side takes the old policy's visitation",
                LOOK_AT_STATES,
                lambda old, new, **w: [
                    gain(old, new, **w),
                    contributions(states=old, actions=new, compared=old, **w).sum(),
                ],
            ),
            Misconception(
                "the right side averages a policy's advantages over its own actions",
                LOOK_AT_ACTIONS,
                lambda old, new, **w: [gain(old, new, **w), 0.0],
            ),
            Misconception(
                "the right side takes the new policy's advantages",
                LOOK_AT_VALUES,
                lambda old, new, **w: [
                    gain(old, new, **w),
                    contributions(states=new, actions=old, compared=new, **w).sum(),
                ],
            ),
            Misconception(
                "the policies are interchanged on the right side",
                LOOK_AT_VALUES,
                lambda old, new, **w: [gain(old, new, **w), terms(new, old, **w).sum()],
            ),
            Misconception(
                "the policies are interchanged on the left side",
                "The gain of the new policy over the old one is positive where the new is better.",
                lambda old, new, **w: [gain(new, old, **w), terms(old, new, **w).sum()],
            ),
            Misconception(
                "the visitation is normalized to sum 1",
                LOOK_AT_MASS,
                lambda old, new, **w: [
                    gain(old, new, **w),
                    (1 - w["gamma"]) * terms(old, new, **w).sum(),
                ],
            ),
            Misconception(
                "the start distribution is not used in the returns",
                "J is the mean of the values over the start distribution.",
                lambda old, new, **w: [
                    gain(old, new, **w | {"mu": exact.alike(w["mu"])}),
                    terms(old, new, **w).sum(),
                ],
            ),
        ),
    ),
    Part(
        id="20-1-d",
        points=2,
        title="Where the gain comes from",
        kind="numbers",
        name="contributions",
        cases=cases.own_pair,
        reference=terms,
        misconceptions=(
            Misconception(
                "the states are weighted by the old policy's visitation",
                LOOK_AT_STATES,
                lambda old, new, **w: contributions(states=old, actions=new, compared=old, **w),
            ),
            Misconception(
                "a policy's advantages are averaged over its own actions",
                LOOK_AT_ACTIONS,
                lambda mu, **c: np.zeros_like(mu),
            ),
            Misconception(
                "the policies are interchanged",
                LOOK_AT_VALUES,
                lambda old, new, **w: terms(new, old, **w),
            ),
            Misconception(
                "the visitation is normalized to sum 1",
                LOOK_AT_MASS,
                lambda gamma, **c: (1 - gamma) * terms(gamma=gamma, **c),
            ),
            Misconception(
                "the states are not weighted",
                "A state contributes in proportion to how often it is visited.",
                lambda P, r, gamma, mu, old, new: (new * advantage(P, r, gamma, old)).sum(axis=1),
            ),
            Misconception(
                "the best action is taken instead of the new policy's",
                "The lemma averages over the actions as the new policy takes them.",
                lambda P, r, gamma, mu, old, new: (
                    visitation(P, gamma, mu, new) * advantage(P, r, gamma, old).max(axis=1)
                ),
            ),
        ),
    ),
)

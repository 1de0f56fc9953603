"""Exact evaluation and the surrogate, as exercises 20.1 and 20.2 ask for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from companion.policy import FloatArray


def transitions(P: FloatArray, pi: FloatArray) -> FloatArray:
    """Return P_pi(s, s'), the transitions between states under a policy."""
    matrix: FloatArray = (pi[:, None, :] @ P)[:, 0]
    return matrix


def visitation(P: FloatArray, gamma: float, mu: FloatArray, pi: FloatArray) -> FloatArray:
    """Return rho = (I - gamma P_pi^T)^-1 mu."""
    return np.linalg.solve(np.eye(len(P)) - gamma * transitions(P, pi).T, mu)


def values(P: FloatArray, r: FloatArray, gamma: float, pi: FloatArray) -> FloatArray:
    """Return v = (I - gamma P_pi)^-1 r_pi."""
    return np.linalg.solve(np.eye(len(P)) - gamma * transitions(P, pi), (pi * r).sum(axis=1))


def action_values(P: FloatArray, r: FloatArray, gamma: float, pi: FloatArray) -> FloatArray:
    """Return q = r + gamma P v."""
    q: FloatArray = r + gamma * P @ values(P, r, gamma, pi)
    return q


def advantage(P: FloatArray, r: FloatArray, gamma: float, pi: FloatArray) -> FloatArray:
    """Return q - v."""
    return action_values(P, r, gamma, pi) - values(P, r, gamma, pi)[:, None]


def expected_return(
    P: FloatArray, r: FloatArray, gamma: float, mu: FloatArray, pi: FloatArray
) -> float:
    """Return J = mu . v."""
    return float(mu @ values(P, r, gamma, pi))


def contributions(
    P: FloatArray,
    r: FloatArray,
    gamma: float,
    mu: FloatArray,
    *,
    states: FloatArray,
    actions: FloatArray,
    compared: FloatArray,
) -> FloatArray:
    """Return rho(s) sum_a pi(a|s) A(s,a), with rho, pi and A each of a policy of its own."""
    inner: FloatArray = (actions * advantage(P, r, gamma, compared)).sum(axis=1)
    return visitation(P, gamma, mu, states) * inner


# From here on w is the world: P, r, gamma and mu.
def surrogate(old: FloatArray, new: FloatArray, **w: Any) -> float:
    """Return L_old(new) = J(old) + sum_s rho_old(s) sum_a new(a|s) A_old(s,a)."""
    gain = contributions(states=old, actions=new, compared=old, **w).sum()
    return float(expected_return(pi=old, **w) + gain)


def surrogate_errors(old: FloatArray, policies: list[FloatArray], **w: Any) -> FloatArray:
    """Return L_old - J of each policy."""
    return np.array([surrogate(old, pi, **w) - expected_return(pi=pi, **w) for pi in policies])


def mixtures(old: FloatArray, new: FloatArray, alphas: FloatArray) -> list[FloatArray]:
    """Return (1 - alpha) old + alpha new for each alpha."""
    return [(1 - alpha) * old + alpha * new for alpha in alphas]


def alike(pi: FloatArray) -> FloatArray:
    """Return the policy, or start distribution, that takes each entry of the last axis alike."""
    return np.full_like(pi, 1 / pi.shape[-1])

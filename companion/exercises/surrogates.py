"""The surrogate exact, sampled, differentiated and along a line, and the cases of exercise 20.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from companion.exercises import exact
from companion.exercises.exact import expected_return, mixtures, surrogate_errors
from companion.exercises.own import draw_mdp, draw_policies, uniform
from companion.policy import FloatArray, softmax

SAMPLES = 10
LINE = [0.002, 0.005, 0.01, 0.02]  # weights of the new policy in part e


def sampled_gain(weight: Callable[..., Any], ddof: int = 1, root: float = 0.5) -> Any:
    """Return the estimate of the gain whose samples carry weight(new, old) of their actions."""

    def estimate(states: Any, actions: Any, adv: Any, old: Any, new: Any, gamma: float) -> Any:
        terms = weight(new[states, actions], old[states, actions]) * adv / (1 - gamma)
        return np.array([terms.mean(), terms.std(ddof=ddof) / len(adv) ** root])

    return estimate


ratio_estimate = sampled_gain(np.divide)


def surrogate_gradient(rho: FloatArray, adv: FloatArray, logits: FloatArray) -> FloatArray:
    """Return rho(s) pi(a|s) (A(s,a) - sum_b pi(b|s) A(s,b))."""
    pi = softmax(logits)
    gradient: FloatArray = rho[:, None] * pi * (adv - (pi * adv).sum(axis=1, keepdims=True))
    return gradient


# From here on w is the world: P, r, gamma and mu.
def along_line(old: Any, new: Any, alphas: Any, **w: Any) -> FloatArray:
    """Return L - J along the mixtures of old and new."""
    return surrogate_errors(old, mixtures(old, new, alphas), **w)


def return_change(old: Any, new: Any, alphas: Any, **w: Any) -> FloatArray:
    """Return J(old) - J along the mixtures of old and new."""
    moved = [expected_return(pi=pi, **w) for pi in mixtures(old, new, alphas)]
    return expected_return(pi=old, **w) - np.array(moved)


def along_logits(old: Any, new: Any, alphas: Any, **w: Any) -> FloatArray:
    """Return L - J along the policies whose logits are mixed."""
    policies = [softmax((1 - a) * np.log(old) + a * np.log(new)) for a in alphas]
    return surrogate_errors(old, policies, **w)


def loglog_slope(alphas: Any, error: Any) -> float:
    """Return the slope of log |error| against log alpha, by least squares."""
    return float(np.polyfit(np.log(alphas), np.log(np.abs(error)), 1)[0])


def slope_and_error(
    fit: Callable[..., float] = loglog_slope, error: Callable[..., Any] = along_line
) -> Any:
    """Return the rule of part e: how the error grows along the line, and what it is at its end."""

    def numbers(alphas: Any, **c: Any) -> Any:
        at_end = error(alphas=np.ones(1), **c)[0]
        return np.array([fit(alphas, error(alphas=alphas, **c)), at_end])

    return numbers


def sample_cases(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw samples, as the old policy might have visited them, with estimated advantages."""
    cases = []
    for mdp in [draw_mdp(rng) for _ in range(3)]:
        old, new = draw_policies(mdp, rng)
        states = rng.integers(mdp.shape[0], size=SAMPLES)
        below = old[states].cumsum(axis=1)[:, :-1] < rng.random((SAMPLES, 1))
        case = {"states": states, "actions": below.sum(axis=1), "old": old, "new": new}
        case["adv"] = np.round(3 * uniform(rng, SAMPLES), 1)
        cases.append({k: array.tolist() for k, array in case.items()} | {"gamma": mdp.gamma})
    return cases


def logit_cases(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw an old policy's visitation and advantages, and the logits of another policy."""
    cases = []
    for mdp in [draw_mdp(rng) for _ in range(3)]:
        old, new = draw_policies(mdp, rng)
        rho = exact.visitation(mdp.P, mdp.gamma, mdp.mu, old)
        adv = exact.advantage(mdp.P, mdp.r, mdp.gamma, old)
        logits = np.log(new) + uniform(rng, (mdp.shape[0], 1))
        case = {"rho": rho, "adv": adv, "logits": logits}
        cases.append({k: np.round(array, 2).tolist() for k, array in case.items()})
    return cases


def line_cases(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw MDPs with a pair of policies and weights of the new one."""
    alphas = [[0.2, 0.6], [0.1, 0.5, 0.9], [0.3, 0.7]]
    drawn = exact.two_policies(student, rng)
    return [case | {"alphas": weights} for case, weights in zip(drawn, alphas, strict=True)]


def own_line(student: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the student's own MDP and policies, and the weights of part e."""
    return [case | {"alphas": LINE} for case in exact.own_pair(student, rng)]

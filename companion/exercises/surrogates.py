"""The surrogate from samples, its gradient, and its error along a line, for exercise 20.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from companion.exercises.exact import expected_return, mixtures, surrogate_errors
from companion.policy import FloatArray, softmax


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

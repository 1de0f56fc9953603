"""Policy optimization with exact values: gradient, natural gradient (mirror descent), iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from companion import validation
from companion.mdp import (
    TabularMDP,
    Values,
    discounted_visits,
    expected_return,
    optimal_action_values,
    solve_values,
    visitation,
)
from companion.policy import (
    FloatArray,
    check_logits,
    check_one_policy,
    check_policy,
    greedy,
    softmax,
)


def policy_gradient(mdp: TabularMDP, pi: FloatArray, values: Values) -> FloatArray:
    """Compute the exact gradient of J with respect to the logits of a tabular softmax.

    dJ / d logits(s,a) = rho_pi(s) pi(a|s) A_pi(s,a)  (chapter, section 9)

    Args:
        mdp: the MDP.
        pi: (..., S, A) policy.
        values: of that policy, by `solve_values`.

    Returns:
        (..., S, A) float64.

    Reference: Agarwal et al. 2021, section 4.
    """
    return discounted_visits(mdp, values.matrix)[..., None] * pi * values.adv


def natural_gradient(mdp: TabularMDP, pi: FloatArray, values: Values) -> FloatArray:
    """Compute the natural gradient of J, which for a tabular softmax is the advantage itself.

    F^+ dJ / d logits = A_pi / (1 - gamma), up to a constant in each state  (chapter, section 9)

    F is the Fisher matrix under d_pi. The constant moves no probability, and pi is not needed: the
    visitation and the probabilities of the gradient cancel against those in F.

    Args and Returns as for `policy_gradient`.

    Reference: Kakade 2001, section 3; Agarwal et al. 2021, lemma 15.
    """
    return values.adv / (1 - mdp.gamma)


def tabular_fisher(mdp: TabularMDP, pi: ArrayLike) -> FloatArray:
    """Form the Fisher matrix of a tabular softmax under its own visitation, to check with.

    F = sum_s d_pi(s) (diag pi(.|s) - pi(.|s) pi(.|s)^T), one block a state  (chapter, section 4)

    It is singular: adding a constant to a state's logits changes nothing.

    Args:
        mdp: the MDP.
        pi: (S, A) policy.

    Returns:
        (S * A, S * A) float64, positive semi-definite, of rank at most S (A - 1).

    Raises:
        ValueError: pi has the wrong shape or is not a policy.
    """
    policy = check_one_policy(pi, mdp.shape)
    d = (1 - mdp.gamma) * visitation(mdp, policy)
    n_states, n_actions = mdp.shape
    blocks = np.zeros((n_states, n_actions, n_states, n_actions))
    for s, row in enumerate(policy):
        blocks[s, :, s, :] = d[s] * (np.diag(row) - np.outer(row, row))
    return blocks.reshape(n_states * n_actions, n_states * n_actions)


def mirror_step(pi: ArrayLike, q: ArrayLike, eta: float) -> FloatArray:
    """Solve one step of policy mirror descent in closed form.

    argmax_p { eta <p, q(s,.)> - KL(p || pi(.|s)) } = pi exp(eta q) / Z  (exercise 20.7)

    Args:
        pi: (..., S, A) policy.
        q: action values, of pi's shape.
        eta: step size; the natural gradient takes the same step with eta (1 - gamma).

    Returns:
        (..., S, A) policy.

    Raises:
        ValueError: eta not finite and above 0, q not finite or of another shape, pi not a policy.

    Reference: Xiao 2022, section 4; Lan 2023, section 2.
    """
    step = validation.positive("eta", eta)
    policy = check_policy(pi)
    values = validation.finite_array("q", q)
    if values.shape != policy.shape:
        raise ValueError(f"q must have pi's shape {policy.shape}; got {values.shape}")
    # Logarithms keep an action that is all but ruled out and yet far better than the others.
    with np.errstate(divide="ignore", over="ignore"):
        scaled = step * values
        logits = np.log(policy) + scaled
    if not np.isfinite(scaled).all():
        raise ValueError(f"eta is too large for these q: their product overflows; got {eta!r}")
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    new: FloatArray = weights / weights.sum(axis=-1, keepdims=True)
    return new


Direction = Callable[[TabularMDP, FloatArray, Values], FloatArray]


class Run(NamedTuple):
    """Gap J* - J(pi_k), shape (iterations + 1, ...), and the last logits, shape (..., S, A)."""

    gap: FloatArray
    logits: FloatArray


def run(
    mdp: TabularMDP,
    direction: Direction,
    start: ArrayLike,
    eta: ArrayLike,
    iterations: int,
    growth: float = 1.0,
) -> Run:
    """Ascend from given logits with exact values, recording the gap to the best return.

    logits_{k+1} = logits_k + eta growth^k direction_k,  gap_k = J* - J(pi_k)  (chapter, section 9)

    Args:
        mdp: the MDP.
        direction: `policy_gradient` or `natural_gradient`.
        start: (..., S, A) logits; leading axes run side by side.
        eta: step sizes, of a shape that broadcasts with the leading axes of start.
        iterations: number of updates.
        growth: factor by which eta grows after each update; 1 keeps it constant.

    Returns:
        Run.

    Raises:
        ValueError: start not finite or of the wrong shape; eta or growth not finite and above 0;
            an eta that does not broadcast with start's leading axes; iterations below 1.
    """
    logits, step = side_by_side(check_logits(start, mdp.shape), validation.finite_array("eta", eta))
    factor = validation.positive("growth", growth)
    count = validation.whole("iterations", iterations, 1)
    v = np.empty((count + 1, *logits.shape[:-1]))
    for k in range(count + 1):
        pi = softmax(logits)
        values = solve_values(mdp, pi)
        v[k] = values.v
        if k < count:
            logits = logits + step * factor**k * direction(mdp, pi, values)
    return Run(optimal_return(mdp) - v @ mdp.mu, logits)


def policy_iteration(mdp: TabularMDP, start: ArrayLike, iterations: int) -> FloatArray:
    """Act greedily on the exact values of the policy before, recording the gap to the best return.

    pi_{k+1}(s) = argmax_a q_{pi_k}(s,a), the mirror step as eta grows  (chapter, section 9)

    Args:
        mdp: the MDP.
        start: (..., S, A) logits of the first policy.
        iterations: number of updates.

    Returns:
        Gap J* - J(pi_k), shape (iterations + 1, ...).

    Raises:
        ValueError: start not finite or of the wrong shape, iterations below 1.
    """
    pi = softmax(check_logits(start, mdp.shape))
    count = validation.whole("iterations", iterations, 1)
    best = optimal_return(mdp)
    gap = np.empty((count + 1, *pi.shape[:-2]))
    for k in range(count + 1):
        values = solve_values(mdp, pi)
        gap[k] = best - values.v @ mdp.mu
        improved = greedy(values.q)
        if np.array_equal(improved, pi):  # a fixed point: every later gap is this one
            gap[k:] = gap[k]
            break
        pi = improved
    return gap


def optimal_return(mdp: TabularMDP) -> float:
    """Return J*, the return of the policy that is greedy on the optimal action values."""
    return float(expected_return(mdp, greedy(optimal_action_values(mdp))))


def side_by_side(logits: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return logits and eta broadcast against each other, eta checked and ready to multiply."""
    if (eta <= 0).any():
        raise ValueError(f"eta must be above 0; got {eta}")
    try:
        leading = np.broadcast_shapes(logits.shape[:-2], eta.shape)
    except ValueError:
        raise ValueError(
            f"eta must broadcast with the leading axes {logits.shape[:-2]} of start; got shape"
            f" {eta.shape}"
        ) from None
    return np.broadcast_to(logits, leading + logits.shape[-2:]), eta[..., None, None]

"""Policy optimization with exact values: gradient, natural gradient (mirror descent), iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from companion import validation
from companion.mdp import (
    TabularMDP,
    action_values,
    expected_return,
    optimal_action_values,
    visitation,
)
from companion.policy import FloatArray, check_policy, greedy, softmax, uniform

PRINTED_ITERATIONS = (1, 3, 10, 30, 100, 1000)


def policy_gradient(mdp: TabularMDP, pi: FloatArray, adv: FloatArray) -> FloatArray:
    """Compute the exact gradient of J with respect to the logits of a tabular softmax.

    dJ / d logits(s,a) = rho_pi(s) pi(a|s) A_pi(s,a)        (section 9)

    Args:
        mdp: the MDP.
        pi: (..., S, A) policy.
        adv: (..., S, A) its advantages.

    Returns:
        (..., S, A) float64.

    Reference: Agarwal et al. 2021, section 4.
    """
    return visitation(mdp, pi)[..., None] * pi * adv


def natural_gradient(mdp: TabularMDP, pi: FloatArray, adv: FloatArray) -> FloatArray:
    """Compute the natural gradient of J, which for a tabular softmax is the advantage itself.

    F^+ dJ / d logits = A_pi / (1 - gamma), up to a constant in each state        (section 9)

    F is the Fisher matrix under d_pi. The constant moves no probability, and pi is not needed: the
    visitation and the probabilities of the gradient cancel against those in F.

    Args and Returns as for `policy_gradient`.

    Reference: Kakade 2001, section 3; Agarwal et al. 2021, lemma 15.
    """
    return adv / (1 - mdp.gamma)


def fisher(mdp: TabularMDP, pi: ArrayLike) -> FloatArray:
    """Form the Fisher matrix of a tabular softmax under its own visitation, to check with.

    F = sum_s d_pi(s) (diag pi(.|s) - pi(.|s) pi(.|s)^T), one block a state        (section 4)

    It is singular: adding a constant to a state's logits changes nothing.

    Args:
        mdp: the MDP.
        pi: (S, A) policy.

    Returns:
        (S * A, S * A) float64, positive semi-definite, of rank at most S (A - 1).

    Raises:
        ValueError: pi has the wrong shape or is not a policy.
    """
    policy = check_policy(pi, mdp.shape)
    d = (1 - mdp.gamma) * visitation(mdp, policy)
    n_states, n_actions = mdp.shape
    blocks = np.zeros((n_states, n_actions, n_states, n_actions))
    for s, row in enumerate(policy):
        blocks[s, :, s, :] = d[s] * (np.diag(row) - np.outer(row, row))
    return blocks.reshape(n_states * n_actions, n_states * n_actions)


def mirror_step(pi: ArrayLike, q: ArrayLike, eta: float) -> FloatArray:
    """Solve one step of policy mirror descent in closed form.

    argmax_p { eta <p, q(s,.)> - KL(p || pi(.|s)) } = pi exp(eta q) / Z        (exercise 20.7)

    Args:
        pi: (S, A) policy.
        q: (S, A) action values.
        eta: step size; the natural gradient takes the same step with eta (1 - gamma).

    Returns:
        (S, A) policy.

    Raises:
        ValueError: eta not finite and above 0, q not finite, pi not a policy.

    Reference: Xiao 2022, section 4; Lan 2023, section 2.
    """
    step = validation.positive("eta", eta)
    policy = check_policy(pi)
    exponent = step * validation.finite_array("q", q)
    weights = policy * np.exp(exponent - exponent.max(axis=-1, keepdims=True))
    new: FloatArray = weights / weights.sum(axis=-1, keepdims=True)
    return new


Direction = Callable[[TabularMDP, FloatArray, FloatArray], FloatArray]


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

    logits_{k+1} = logits_k + eta growth^k direction_k,  gap_k = J* - J(pi_k)        (section 9)

    Args:
        mdp: the MDP.
        direction: `policy_gradient` or `natural_gradient`.
        start: (..., S, A) logits; leading axes run side by side.
        eta: step size, one for all or one for each leading entry of start.
        iterations: number of updates.
        growth: factor by which eta grows after each update; 1 keeps it constant.

    Returns:
        Run.

    Raises:
        ValueError: start not finite or of the wrong shape; eta or growth not finite and above 0;
            iterations below 1.
    """
    logits = _check_logits(mdp, start)
    step = validation.finite_array("eta", eta)[..., None, None]
    if (step <= 0).any():
        raise ValueError(f"eta must be above 0; got {eta!r}")
    factor = validation.positive("growth", growth)
    count = validation.whole("iterations", iterations, 1)
    best = optimal_return(mdp)
    gap = np.empty((count + 1, *logits.shape[:-2]))
    for k in range(count + 1):
        pi = softmax(logits)
        v, _, adv = action_values(mdp, pi)
        gap[k] = best - v @ mdp.mu
        if k < count:
            logits = logits + step * factor**k * direction(mdp, pi, adv)
    return Run(gap, logits)


def policy_iteration(mdp: TabularMDP, start: ArrayLike, iterations: int) -> FloatArray:
    """Act greedily on the exact values of the policy before, recording the gap to the best return.

    pi_{k+1}(s) = argmax_a q_{pi_k}(s,a): the limit of the mirror step for eta to infinity
    (section 9)

    Args:
        mdp: the MDP.
        start: (..., S, A) logits of the first policy.
        iterations: number of updates.

    Returns:
        Gap J* - J(pi_k), shape (iterations + 1, ...).

    Raises:
        ValueError: start not finite or of the wrong shape, iterations below 1.
    """
    pi = softmax(_check_logits(mdp, start))
    count = validation.whole("iterations", iterations, 1)
    best = optimal_return(mdp)
    gap = np.empty((count + 1, *pi.shape[:-2]))
    for k in range(count + 1):
        v, q, _ = action_values(mdp, pi)
        gap[k] = best - v @ mdp.mu
        pi = greedy(q)
    return gap


def optimal_return(mdp: TabularMDP) -> float:
    """Return J*, the return of the policy that is greedy on the optimal action values."""
    return float(expected_return(mdp, greedy(optimal_action_values(mdp))))


def poor_start(mdp: TabularMDP, logit: float = 8.0) -> FloatArray:
    """Return logits that put almost everything on each state's worst action.

    Worst means the smallest action value under the uniform policy. With the chapter's 8.0 and four
    actions that action has probability 0.999.

    Args:
        mdp: the MDP.
        logit: of the worst action; all others are 0.

    Returns:
        (S, A) float64.

    Raises:
        ValueError: logit is not finite and at least 0.
    """
    _, q, _ = action_values(mdp, uniform(*mdp.shape))
    return validation.non_negative("logit", logit) * greedy(-q)


def comparison(
    mdp: TabularMDP,
    gradient_etas: tuple[float, ...] = (1.0, 10.0),
    natural_etas: tuple[float, ...] = (0.1, 1.0),
    iterations: int = 1000,
) -> dict[tuple[str, str], FloatArray]:
    """Run every method of the chapter's table from the uniform and from the poor start.

    Args:
        mdp: the MDP; `random_mdp(rng=np.random.default_rng(0))` is the printed one.
        gradient_etas, natural_etas: step sizes of the two gradient methods.
        iterations: updates of each run.

    Returns:
        {(method, start): gap (iterations + 1,)} in the order of the table.

    Raises:
        ValueError: a step size not finite and above 0, iterations below 1.
    """
    starts = {"uniform": np.zeros(mdp.shape), "poor": poor_start(mdp)}
    logits = np.stack(list(starts.values()))
    gaps: dict[tuple[str, str], FloatArray] = {}
    methods: list[tuple[str, Direction, tuple[float, ...]]] = [
        ("policy gradient", policy_gradient, gradient_etas),
        ("natural PG", natural_gradient, natural_etas),
    ]
    for name, direction, etas in methods:
        batch = np.repeat(logits[:, None], len(etas), axis=1)
        result = run(mdp, direction, batch, np.array(etas), iterations).gap
        for i, start in enumerate(starts):
            for j, eta in enumerate(etas):
                gaps[f"{name}, eta {eta:g}", start] = result[:, i, j]
    result = policy_iteration(mdp, logits, iterations)
    for i, start in enumerate(starts):
        gaps["policy iteration", start] = result[:, i]
    return {key: gaps[key] for start in starts for key in gaps if key[1] == start}


def _check_logits(mdp: TabularMDP, start: ArrayLike) -> FloatArray:
    logits = validation.finite_array("start", start)
    if logits.shape[-2:] != mdp.shape:
        wanted = f"(..., {mdp.shape[0]}, {mdp.shape[1]})"
        raise ValueError(f"start must have shape {wanted}; got {logits.shape}")
    return logits

"""The chapter's mirror-descent experiment: three methods, two starts; its bound, its sizes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from companion import validation
from companion.mdp import (
    TabularMDP,
    Values,
    evaluate,
    optimal_action_values,
    random_mdp,
    solve_values,
)
from companion.mirror import natural_gradient, policy_gradient, policy_iteration, run
from companion.policy import FloatArray, check_logits, greedy, kl, softmax, uniform

NEGLIGIBLE = 1e-12  # rounding: the chapter's table stops there, and so does every printed number


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
    q = solve_values(mdp, uniform(*mdp.shape)).q
    return validation.non_negative("logit", logit) * greedy(-q)


def comparison(
    mdp: TabularMDP,
    gradient_etas: tuple[float, ...] = (1.0, 10.0),
    natural_etas: tuple[float, ...] = (0.1, 1.0),
    iterations: int = 1000,
    growth: float = 1.0,
    poor_logit: float = 8.0,
) -> dict[tuple[str, str], FloatArray]:
    """Run every method of the chapter's table from the uniform and from the poor start.

    Args:
        mdp: the MDP; `random_mdp(rng=np.random.default_rng(0))` is the printed one.
        gradient_etas, natural_etas: step sizes of the two gradient methods.
        iterations: updates of each run.
        growth: factor by which both kinds of step grow after each update, as for `run`.
        poor_logit: of the worst action in the poor start, as for `poor_start`.

    Returns:
        {(method, start): gap (iterations + 1,)} in the order of the table.

    Raises:
        ValueError: a step size or growth not finite and above 0, iterations below 1, poor_logit
            not finite and at least 0.
    """
    plain = len(gradient_etas)

    def direction(mdp: TabularMDP, pi: FloatArray, values: Values) -> FloatArray:
        directions = natural_gradient(mdp, pi, values)
        first = Values(*(x[:plain] for x in values))
        directions[:plain] = policy_gradient(mdp, pi[:plain], first)
        return directions

    starts = {"uniform": np.zeros(mdp.shape), "poor": poor_start(mdp, poor_logit)}
    logits = np.stack(list(starts.values()))
    etas = np.array([*gradient_etas, *natural_etas])
    ascent = run(mdp, direction, logits, etas[:, None], iterations, growth).gap
    improved = policy_iteration(mdp, logits, iterations)
    gaps: dict[tuple[str, str], FloatArray] = {}
    for i, start in enumerate(starts):
        for j, eta in enumerate(etas):
            name = "policy gradient" if j < plain else "natural PG"
            gaps[f"{name}, eta {eta:g}", start] = ascent[:, j, i]
        gaps["policy iteration", start] = improved[:, i]
    return gaps


def gap_as_printed(gap: float) -> str:
    """Write a gap as the chapter's table does.

    >>> gap_as_printed(0.012345), gap_as_printed(-3e-16)
    ('1.2e-02', '< 1e-12')
    """
    return f"{gap:.1e}" if gap > NEGLIGIBLE else "< 1e-12"


def npg_gap_bound(mdp: TabularMDP, start: ArrayLike, eta: float, iterations: int) -> FloatArray:
    """Bound the gap of the natural gradient with constant steps from above.

    gap_k <= sum_s rho*(s) [(1 - gamma) / eta KL(pi* || pi_0)(s) + v*(s) - v_0(s)] / (k + 1)
    with rho* the visitation of the optimal policy pi*  (chapter, section 9)

    The number of states does not occur, and a start that is all but deterministic costs its
    logarithm only.

    Args:
        mdp: the MDP.
        start: (S, A) logits of the first policy.
        eta: step size, as for `run`.
        iterations: number of updates.

    Returns:
        The bound for k = 0 to iterations, float64.

    Raises:
        ValueError: start not finite or of the wrong shape, eta not finite and above 0, iterations
            below 1.

    Reference: Agarwal et al. 2021, theorem 16; Xiao 2022, section 4.
    """
    step = validation.positive("eta", eta)
    count = validation.whole("iterations", iterations, 1)
    logits = check_logits(start, mdp.shape)
    if logits.ndim > 2:
        raise ValueError(f"start must have shape {mdp.shape}; got {logits.shape}")
    pi = softmax(logits)
    best = greedy(optimal_action_values(mdp))
    v, _, _, rho = evaluate(mdp, best)
    divergence = rho @ kl(best, pi)
    missing = rho @ (v - solve_values(mdp, pi).v)
    constant = (1 - mdp.gamma) / step * divergence + missing
    bound: FloatArray = constant / np.arange(1, count + 2)
    return bound


def sized_mdp(n_states: int, *, rng: np.random.Generator) -> TabularMDP:
    """Draw a random MDP in which an action leads to about as few states whatever their number.

    Args:
        n_states: at least 1; with 20 the result is the chapter's random MDP.
        rng: the source.

    Raises:
        ValueError: n_states below 1.

    >>> ours, chapter = (np.random.default_rng(0) for _ in range(2))
    >>> bool((sized_mdp(20, rng=ours).P == random_mdp(rng=chapter).P).all())
    True
    """
    return random_mdp(
        n_states, concentration=2 / validation.whole("n_states", n_states, 1), rng=rng
    )

"""The chapter's mirror-descent experiment: three methods, two starts, one random MDP."""

from __future__ import annotations

import numpy as np

from companion import validation
from companion.mdp import TabularMDP, Values, action_values
from companion.mirror import natural_gradient, policy_gradient, policy_iteration, run
from companion.policy import FloatArray, greedy, uniform

PRINTED_ITERATIONS = (1, 3, 10, 30, 100, 1000)


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
    q = action_values(mdp, uniform(*mdp.shape)).q
    return validation.non_negative("logit", logit) * greedy(-q)


def comparison(
    mdp: TabularMDP,
    gradient_etas: tuple[float, ...] = (1.0, 10.0),
    natural_etas: tuple[float, ...] = (0.1, 1.0),
    iterations: int = 1000,
    growth: float = 1.0,
) -> dict[tuple[str, str], FloatArray]:
    """Run every method of the chapter's table from the uniform and from the poor start.

    Args:
        mdp: the MDP; `random_mdp(rng=np.random.default_rng(0))` is the printed one.
        gradient_etas, natural_etas: step sizes of the two gradient methods.
        iterations: updates of each run.
        growth: factor by which both kinds of step grow after each update, as for `run`.

    Returns:
        {(method, start): gap (iterations + 1,)} in the order of the table.

    Raises:
        ValueError: a step size or growth not finite and above 0, iterations below 1.
    """
    plain = len(gradient_etas)

    def direction(mdp: TabularMDP, pi: FloatArray, values: Values) -> FloatArray:
        directions = natural_gradient(mdp, pi, values)
        first = Values(*(x[:plain] for x in values))
        directions[:plain] = policy_gradient(mdp, pi[:plain], first)
        return directions

    starts = {"uniform": np.zeros(mdp.shape), "poor": poor_start(mdp)}
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

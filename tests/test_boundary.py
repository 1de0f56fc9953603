"""Arguments of the wrong kind are refused by name, with what is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from companion import validation
from companion.bounds import upper_bounds
from companion.mdp import TabularMDP, chain, random_mdp
from companion.mirror import mirror_step, tabular_fisher
from companion.mirror_example import npg_gap_bound
from companion.objective import adapt_beta, clipped_objective, ratio
from companion.penalty import penalized_policy, penalty_loop
from companion.policy import greedy, kl, logit_bounds, mixture, random_policy, uniform
from companion.sampling import trajectories, visits
from companion.trust_region import local_surrogate

MDP = random_mdp(4, 3, rng=np.random.default_rng(0))
PI = uniform(4, 3)
SEED: Any = 0
NOT_A_GENERATOR = "rng must be a NumPy generator, such as np.random.default_rng(0); got 0"
CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: random_mdp(rng=SEED), NOT_A_GENERATOR),
    (lambda: random_policy(2, 2, rng=SEED), NOT_A_GENERATOR),
    (lambda: visits(MDP, PI, 2, rng=SEED), NOT_A_GENERATOR),
    (lambda: trajectories(MDP, PI, 2, 2, rng=SEED), NOT_A_GENERATOR),
    (lambda: penalty_loop(1.0, 1.0, adaptive=True, rng=SEED), NOT_A_GENERATOR),
    (
        lambda: penalty_loop(1.0, 1.0, adaptive=True, rng=np.random.default_rng(0), runs=0),
        "runs must be a whole number of at least 1; got 0",
    ),
    (
        lambda: penalized_policy(PI, np.zeros((4, 3)), np.ones(7)),
        "beta and adv must have axes that broadcast; beta (7,), adv (4, 3)",
    ),
    (
        lambda: mixture([PI, PI], PI, [0.1, 0.2, 0.3]),
        "alpha and pi and other must have axes that broadcast; alpha (3, 1, 1), pi (2, 4, 3),"
        " other (4, 3)",
    ),
    (
        lambda: kl([PI, PI], [PI, PI, PI]),
        "old and new must have axes that broadcast; old (2, 4, 3), new (3, 4, 3)",
    ),
    (
        lambda: logit_bounds([0.1, 0.2], [0.1, 0.2, 0.3]),
        "p and clip_range must have axes that broadcast; p (2,), clip_range (3,)",
    ),
    (lambda: greedy(3.0), "q must have shape (..., actions); got the number 3.0"),
    (
        lambda: mirror_step(PI, 100 * PI, 1e308),
        "eta is too large for these q: their product overflows; got 1e+308",
    ),
    (
        lambda: tabular_fisher(MDP, [PI, PI]),
        "pi must be one policy of shape (4, 3); got (2, 4, 3)",
    ),
    (
        lambda: npg_gap_bound(MDP, np.zeros((2, 4, 3)), 1.0, 5),
        "start must have shape (4, 3); got (2, 4, 3)",
    ),
    (
        lambda: TabularMDP(MDP.P, MDP.r, [0.5, 0.6], MDP.mu),  # type: ignore[arg-type]
        "gamma must be one number; got [0.5, 0.6]",
    ),
    (lambda: chain(slip=[0.1]), "slip must be one number; got [0.1]"),  # type: ignore[arg-type]
    (
        lambda: upper_bounds(MDP, PI, PI, [0.1, 0.2]),  # type: ignore[arg-type]
        "alpha must be one number; got [0.1, 0.2]",
    ),
    (
        lambda: ratio([0.1], [0.2]),
        "logp, logp_old must be arrays of one library, NumPy, PyTorch or JAX: list is not a"
        " supported array type",
    ),
    (
        lambda: clipped_objective(torch.ones(2), np.ones(2)),
        "ratio, adv must be arrays of one library, NumPy, PyTorch or JAX: Multiple namespaces",
    ),
    (lambda: adapt_beta(1.0, "0.1", 0.1), "kl must be one number; got '0.1'"),  # type: ignore[arg-type]
    (lambda: validation.positive("x", 10**400), "x must be one number; got 1000"),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=range(len(CALLS)))
def test_the_argument_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        call()


def test_a_step_of_another_length_than_the_parameters_is_refused_and_nothing_moves() -> None:
    policy = torch.nn.Linear(2, 2)
    before = policy.weight.detach().clone()
    actions, adv = torch.tensor([0, 1, 1]), torch.ones(3)
    _, evaluate = local_surrogate(policy, torch.ones(3, 2), actions, adv)
    with pytest.raises(ValueError, match=r"step must have shape \(6,\); got \(5,\)"):
        evaluate(torch.ones(5))
    assert torch.equal(policy.weight, before)

"""Rollouts in tabular MDPs against the exact visitation, and the effective sample size."""

from __future__ import annotations

import numpy as np
import pytest

from companion.improvement import sampled_surrogate_gain, surrogate_gain
from companion.mdp import evaluate, expected_return, random_mdp
from companion.policy import random_policy
from companion.sampling import effective_sample_share, trajectories, visits

RNG = np.random.default_rng(0)
MDP = random_mdp(n_states=6, n_actions=3, rng=RNG)
OLD, NEW = (random_policy(*MDP.shape, rng=RNG) for _ in range(2))


def test_visits_come_from_the_discounted_visitation() -> None:
    n = 200_000
    states, actions = visits(MDP, OLD, n, rng=np.random.default_rng(1))
    exact = (1 - MDP.gamma) * evaluate(MDP, OLD).rho[:, None] * OLD
    counts = np.zeros(MDP.shape)
    np.add.at(counts, (states, actions), 1)
    chi_square = ((counts - n * exact) ** 2 / (n * exact)).sum()
    assert chi_square < 42.3  # 99.9 % quantile at 17 degrees of freedom is 40.8


def test_the_sampled_surrogate_is_within_its_standard_errors() -> None:
    states, actions = visits(MDP, OLD, 100_000, rng=np.random.default_rng(2))
    estimate = sampled_surrogate_gain(MDP, OLD, NEW, states, actions)
    exact = float(surrogate_gain(MDP, OLD, NEW))
    assert abs(estimate.mean - exact) < 4 * estimate.standard_error


def test_discounted_rewards_of_trajectories_average_to_the_return() -> None:
    states, actions = trajectories(MDP, OLD, 4000, 150, rng=np.random.default_rng(3))
    discounts = MDP.gamma ** np.arange(150)
    returns = (MDP.r[states, actions] * discounts).sum(axis=1)
    error = abs(returns.mean() - expected_return(MDP, OLD))
    assert error < 4 * returns.std() / np.sqrt(4000)


def test_trajectories_follow_the_transitions() -> None:
    states, actions = trajectories(MDP, OLD, 500, 20, rng=np.random.default_rng(4))
    assert (MDP.P[states[:, :-1], actions[:, :-1], states[:, 1:]] > 0).all()


def test_the_same_seed_draws_the_same() -> None:
    first = visits(MDP, OLD, 100, rng=np.random.default_rng(5))
    again = visits(MDP, OLD, 100, rng=np.random.default_rng(5))
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize(
    ("weights", "share"), [([2.0, 2.0], 1.0), ([1.0, 0.0, 0.0, 0.0], 0.25), ([1, 3], 0.8)]
)
def test_effective_share_in_closed_form(weights: list[float], share: float) -> None:
    assert effective_sample_share(weights) == pytest.approx(share)


@pytest.mark.parametrize("weights", [[], [0.0, 0.0], [1.0, -1.0], [np.nan]])
def test_weights_that_are_none_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weights"):
        effective_sample_share(weights)


@pytest.mark.parametrize("size", [0, -1, 2.5, np.nan])
def test_rollouts_of_impossible_sizes_are_refused(size: float) -> None:
    message = f"must be a whole number of at least 1; got {size!r}"
    with pytest.raises(ValueError, match=f"n {message}"):
        visits(MDP, OLD, size, rng=RNG)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"n {message}"):
        trajectories(MDP, OLD, size, 5, rng=RNG)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"horizon {message}"):
        trajectories(MDP, OLD, 5, size, rng=RNG)  # type: ignore[arg-type]


def test_a_batch_of_policies_is_refused() -> None:
    message = r"pi must be one policy of shape \(6, 3\); got \(2, 6, 3\)"
    with pytest.raises(ValueError, match=message):
        visits(MDP, np.stack([OLD, NEW]), 5, rng=RNG)
    with pytest.raises(ValueError, match=message):
        trajectories(MDP, np.stack([OLD, NEW]), 5, 5, rng=RNG)


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_the_share_does_not_depend_on_the_scale_of_the_weights(size: float) -> None:
    assert effective_sample_share([size, 3 * size]) == pytest.approx(0.8)


def test_negative_states_are_refused() -> None:
    with pytest.raises(ValueError, match="states must be whole numbers from 0 to 5"):
        sampled_surrogate_gain(MDP, OLD, NEW, [-1, 0], [0, 0])

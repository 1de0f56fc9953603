"""Exact evaluation against closed forms, power series, and Bellman's equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.mdp import (
    TabularMDP,
    chain,
    evaluate,
    expected_return,
    optimal_action_values,
    random_mdp,
    two_state_trap,
)
from companion.policy import FloatArray, random_policy, uniform


def drawn(seed: int, gamma: float) -> tuple[TabularMDP, FloatArray]:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(7, 3, gamma, rng=rng)
    mu = rng.dirichlet(np.ones(7))
    mdp = TabularMDP(mdp.P, rng.normal(size=(7, 3)), gamma, mu)
    return mdp, random_policy(7, 3, rng=rng, concentration=0.5)


mdps_and_policies = st.builds(drawn, st.integers(0, 2**32), st.floats(0, 0.999))


@given(mdps_and_policies)
def test_bellman_equations_hold(pair: tuple[TabularMDP, FloatArray]) -> None:
    mdp, pi = pair
    v, q, adv, rho = evaluate(mdp, pi)
    size = 1 + np.abs(v).max()
    assert np.abs(v - (pi * q).sum(axis=1)).max() < 1e-12 * size
    assert np.abs(q - mdp.r - mdp.gamma * np.einsum("sat,t->sa", mdp.P, v)).max() < 1e-12 * size
    assert np.abs((pi * adv).sum(axis=1)).max() < 1e-12 * size
    flow = mdp.mu + mdp.gamma * np.einsum("s,sa,sat->t", rho, pi, mdp.P)
    np.testing.assert_allclose(rho, flow, rtol=1e-11)


@given(mdps_and_policies)
def test_visitation_has_mass_one_over_one_minus_gamma(
    pair: tuple[TabularMDP, FloatArray],
) -> None:
    mdp, pi = pair
    rho = evaluate(mdp, pi).rho
    assert (rho >= mdp.mu - 1e-15).all()
    assert rho.sum() == pytest.approx(1 / (1 - mdp.gamma), rel=1e-11)
    reward = rho @ (pi * mdp.r).sum(axis=1)
    assert expected_return(mdp, pi) == pytest.approx(reward, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9])
def test_evaluation_equals_the_power_series(gamma: float) -> None:
    mdp, pi = drawn(0, gamma)
    r_pi, P_pi = (pi * mdp.r).sum(axis=1), np.einsum("sa,sat->st", pi, mdp.P)
    v, rho, weight, reached = np.zeros(7), np.zeros(7), np.eye(7), mdp.mu
    for _ in range(400):
        v = v + weight @ r_pi
        rho = rho + reached
        weight = gamma * weight @ P_pi
        reached = gamma * reached @ P_pi
    result = evaluate(mdp, pi)
    np.testing.assert_allclose(result.v, v, rtol=1e-12)
    np.testing.assert_allclose(result.rho, rho, rtol=1e-12)


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99])
def test_trap_has_its_closed_form(gamma: float) -> None:
    """Bold for ever: 0.2 once, then -1 for ever. Careful for ever: nothing."""
    mdp = two_state_trap(gamma)
    careful, bold = evaluate(mdp, [[1, 0], [1, 0]]), evaluate(mdp, [[0, 1], [0, 1]])
    pit = -1 / (1 - gamma)
    np.testing.assert_allclose(bold.v, [0.2 + gamma * pit, pit], rtol=1e-12)
    np.testing.assert_allclose(bold.q[:, 1], bold.v, rtol=1e-12)
    np.testing.assert_allclose(bold.q[:, 0], gamma * bold.v[0], rtol=1e-12)
    np.testing.assert_allclose(bold.rho, [1, gamma / (1 - gamma)], rtol=1e-12)
    np.testing.assert_array_equal(careful.v, [0, 0])
    np.testing.assert_allclose(careful.adv, [[0, 0.2], [0, -1]], atol=1e-15)
    np.testing.assert_allclose(careful.rho, [1 / (1 - gamma), 0], atol=1e-15)


def test_chain_without_slip_has_its_closed_form() -> None:
    """Always right: five steps to the right end, then 1 for ever. Always left: 0.1 for ever."""
    mdp = chain(n_states=6, gamma=0.9, slip=0.0)
    right, left = np.tile([0.0, 1.0], (6, 1)), np.tile([1.0, 0.0], (6, 1))
    steps = np.arange(6)
    np.testing.assert_allclose(evaluate(mdp, right).v, 0.9 ** steps[::-1] / 0.1, rtol=1e-12)
    np.testing.assert_allclose(evaluate(mdp, left).v, 0.9**steps * 0.1 / 0.1, rtol=1e-12)
    expected = np.append(0.9 ** steps[:-1], 0.9**5 / 0.1)
    np.testing.assert_allclose(evaluate(mdp, right).rho, expected, rtol=1e-12)


def test_chain_slips_both_ways() -> None:
    P = chain(n_states=3, slip=0.1).P
    np.testing.assert_allclose(P[1], [[0.9, 0, 0.1], [0.1, 0, 0.9]])
    np.testing.assert_allclose(P[0], [[0.9, 0.1, 0], [0.1, 0.9, 0]])
    np.testing.assert_allclose(P[2], [[0, 0.9, 0.1], [0, 0.1, 0.9]])


def test_a_batch_equals_its_policies_one_by_one() -> None:
    mdp, _ = drawn(1, 0.9)
    rng = np.random.default_rng(2)
    batch = np.stack([random_policy(7, 3, rng=rng) for _ in range(6)]).reshape(2, 3, 7, 3)
    together = evaluate(mdp, batch)
    assert [x.shape for x in together] == [(2, 3, 7), (2, 3, 7, 3), (2, 3, 7, 3), (2, 3, 7)]
    for i, j in np.ndindex(2, 3):
        for ours, alone in zip(together, evaluate(mdp, batch[i, j]), strict=True):
            np.testing.assert_allclose(ours[i, j], alone, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(expected_return(mdp, batch), together.v @ mdp.mu, rtol=1e-13)


@given(mdps_and_policies)
def test_optimal_action_values_solve_the_optimality_equation(
    pair: tuple[TabularMDP, FloatArray],
) -> None:
    mdp, pi = pair
    q = optimal_action_values(mdp)
    size = 1 + np.abs(q).max()
    assert np.abs(q - mdp.r - mdp.gamma * mdp.P @ q.max(axis=1)).max() < 1e-12 * size
    assert (evaluate(mdp, pi).v <= q.max(axis=1) + 1e-12 * size).all()


def test_optimal_action_values_equal_value_iteration() -> None:
    mdp = random_mdp(rng=np.random.default_rng(0))
    q = np.zeros(mdp.shape)
    for _ in range(400):
        q = mdp.r + mdp.gamma * mdp.P @ q.max(axis=1)
    np.testing.assert_allclose(optimal_action_values(mdp), q, rtol=1e-13)


def test_optimal_action_values_end_where_actions_tie() -> None:
    """Actions that are copies of each other differ by rounding at most, in any order."""
    base = random_mdp(30, 2, 0.99, rng=np.random.default_rng(3))
    tied = TabularMDP(np.tile(base.P, (1, 3, 1)), np.tile(base.r, (1, 3)), base.gamma, base.mu)
    expected = np.tile(optimal_action_values(base), (1, 3))
    np.testing.assert_allclose(optimal_action_values(tied), expected, rtol=1e-12)
    nothing = TabularMDP(base.P, np.zeros(base.r.shape), 0.9, base.mu)
    assert (optimal_action_values(nothing) == 0).all()


def test_optimal_chain_walks_right() -> None:
    q = optimal_action_values(chain(slip=0.0))
    np.testing.assert_allclose(q.max(axis=1), 0.9 ** np.arange(6)[::-1] / 0.1, rtol=1e-12)


def test_random_mdp_follows_the_protocol() -> None:
    """Transitions first, then rewards, both from one generator; a uniform start."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(20, 0.1), size=(20, 4))
    r = rng.random((20, 4)) ** 3
    mdp = random_mdp(rng=np.random.default_rng(0))
    np.testing.assert_array_equal(mdp.P, P)
    np.testing.assert_array_equal(mdp.r, r)
    np.testing.assert_array_equal(mdp.mu, np.full(20, 0.05))
    assert mdp.gamma == 0.9
    assert mdp.shape == (20, 4)


GOOD: dict[str, Any] = {
    "P": np.full((2, 3, 2), 0.5),
    "r": np.zeros((2, 3)),
    "gamma": 0.9,
    "mu": [0.5, 0.5],
}
BAD_ROW, NEGATIVE, NOT_A_NUMBER = (GOOD["P"].copy() for _ in range(3))
BAD_ROW[1, 2] = [0.5, 0.4]
NEGATIVE[1, 2] = [1.5, -0.5]
NOT_A_NUMBER[0, 1, 0] = np.nan


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("P", BAD_ROW, r"P\[1, 2\] must sum to 1 over its last axis; it sums to 0.9"),
        ("P", NEGATIVE, r"P must not be negative; P\[1, 2, 1\] is -0.5"),
        ("P", NOT_A_NUMBER, r"P must be finite; P\[0, 1, 0\] is nan"),
        ("P", np.full((2, 3), 0.5), r"P must have shape \(states, actions, states\); got \(2, 3\)"),
        ("P", np.full((2, 3, 4), 0.25), r"P must have shape .*; got \(2, 3, 4\)"),
        ("r", np.zeros((3, 2)), r"r must have shape \(2, 3\), as P has; got \(3, 2\)"),
        ("r", np.full((2, 3), np.inf), r"r must be finite; r\[0, 0\] is inf"),
        ("mu", [0.2, 0.3, 0.5], r"mu must have shape \(2,\), as P has; got \(3,\)"),
        ("mu", [0.5, 0.6], "mu must sum to 1 over its last axis; it sums to 1.1"),
        ("mu", [1.5, -0.5], r"mu must not be negative; mu\[1\] is -0.5"),
        ("gamma", 1.0, r"gamma must lie in \[0, 1\); got 1.0"),
        ("gamma", -0.1, r"gamma must lie in \[0, 1\); got -0.1"),
        ("gamma", np.nan, r"gamma must lie in \[0, 1\); got nan"),
    ],
)
def test_what_is_no_mdp_is_refused(argument: str, value: Any, message: str) -> None:
    TabularMDP(**GOOD)
    with pytest.raises(ValueError, match=message):
        TabularMDP(**(GOOD | {argument: value}))


def test_an_mdp_keeps_copies_that_nobody_can_change() -> None:
    arrays = {name: np.array(GOOD[name]) for name in ("P", "r", "mu")}
    mdp = TabularMDP(gamma=0.9, **arrays)
    for name, array in arrays.items():
        array *= 0.5
        kept = getattr(mdp, name)
        np.testing.assert_array_equal(kept, GOOD[name])
        with pytest.raises(ValueError, match="read-only"):
            kept[0] = 1


def test_other_bad_input_is_refused() -> None:
    mdp = TabularMDP(**GOOD)
    with pytest.raises(ValueError, match=r"pi must have shape \(..., 2, 3\); got \(2, 2\)"):
        evaluate(mdp, uniform(2, 2))
    with pytest.raises(ValueError, match=r"pi\[0\] must sum to 1"):
        expected_return(mdp, np.full((2, 3), 0.3))
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="n_states must be a whole number of at least 1; got 0"):
        random_mdp(0, rng=rng)
    with pytest.raises(ValueError, match="concentration must be finite and above 0; got -1"):
        random_mdp(concentration=-1, rng=rng)
    with pytest.raises(ValueError, match="n_states must be a whole number of at least 2; got 1"):
        chain(1)
    with pytest.raises(ValueError, match=r"slip must lie in \[0, 1\]; got 2"):
        chain(slip=2)
    with pytest.raises(ValueError, match=r"gamma must lie in \[0, 1\); got 1"):
        two_state_trap(1)

"""The lemma, the surrogate and both bounds, on random MDPs and where the answer is known."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import comb

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from companion.bounds import (
    LargestSteps,
    cpi_best_alpha,
    cpi_bound,
    cpi_terms,
    kl_bound,
    largest_steps,
    upper_bounds,
)
from companion.improvement import (
    performance_difference,
    sampled_surrogate_gain,
    surrogate,
    surrogate_gain,
)
from companion.mdp import TabularMDP, chain, evaluate, expected_return, random_mdp, two_state_trap
from companion.policy import FloatArray, greedy, kl, mixture, random_policy, softmax, uniform


@dataclass(frozen=True)
class Pair:
    """An MDP with two policies.

    unit: the largest size that a return can have.
    rounding: what the sum of advantages over visited states may be off by.
    """

    mdp: TabularMDP
    old: FloatArray
    new: FloatArray

    @property
    def unit(self) -> float:
        return float(np.abs(self.mdp.r).max() / (1 - self.mdp.gamma))

    @property
    def rounding(self) -> float:
        return 1e-14 * self.unit / (1 - self.mdp.gamma)


@st.composite
def pairs(draw: st.DrawFn, deterministic: bool = True) -> Pair:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    gamma = draw(st.sampled_from([0.0, 0.3, 0.9, 0.99, 0.999]))
    sizes = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    mdp = random_mdp(*sizes, gamma=gamma, concentration=draw(st.sampled_from([0.1, 1])), rng=rng)
    policies = []
    for _ in range(2):
        concentration = draw(st.sampled_from([0.3, 1, 10]))
        pi = random_policy(*sizes, rng=rng, concentration=concentration)
        policies.append(greedy(pi) if deterministic and draw(st.booleans()) else pi)
    return Pair(mdp, *policies)


ALPHAS = np.concatenate([[0], np.geomspace(1e-6, 1, 25)])


@given(pairs())
def test_the_two_sides_of_the_lemma_agree(pair: Pair) -> None:
    sides = performance_difference(pair.mdp, pair.old, pair.new)
    assert sides.residual <= 1e-10 * max(1, pair.unit)


@given(pairs())
def test_the_surrogate_has_the_value_of_the_return_at_the_old_policy(pair: Pair) -> None:
    J = expected_return(pair.mdp, pair.old)
    np.testing.assert_allclose(surrogate(pair.mdp, pair.old, pair.old), J, atol=1e-12 * pair.unit)


@given(pairs(deterministic=False), st.integers(0, 2**32 - 1))
def test_surrogate_and_return_have_the_same_gradient_there(pair: Pair, seed: int) -> None:
    logits, h = np.log(pair.old), 1e-5
    direction = np.random.default_rng(seed).standard_normal(logits.shape)
    ahead, behind = softmax(logits + h * direction), softmax(logits - h * direction)
    _, _, adv, rho = evaluate(pair.mdp, pair.old)
    slope = (rho[:, None] * pair.old * adv * direction).sum()  # policy gradient theorem
    for function in (
        lambda pi: expected_return(pair.mdp, pi),
        lambda pi: surrogate(pair.mdp, pair.old, pi),
    ):
        difference = (function(ahead) - function(behind)) / (2 * h)
        assert difference == pytest.approx(slope, abs=1e-6 * pair.unit / (1 - pair.mdp.gamma) ** 2)


@given(pairs())
def test_the_surrogate_is_off_at_second_order_by_the_shift_of_the_states(pair: Pair) -> None:
    # rho_alpha - rho = alpha gamma rho_alpha (P_new - P_old) (I - gamma P_old)^-1
    mdp, gamma = pair.mdp, pair.mdp.gamma
    P_old, P_new = (np.einsum("sa,sat->st", pi, mdp.P) for pi in (pair.old, pair.new))
    inverse = np.linalg.inv(np.eye(len(P_old)) - gamma * P_old)
    _, _, adv, _ = evaluate(mdp, pair.old)
    per_state = (pair.new * adv).sum(axis=1)
    for alpha in (1e-3, 1e-2, 1.0):
        mixed = mixture(pair.old, pair.new, alpha)
        coefficient = gamma * evaluate(mdp, mixed).rho @ (P_new - P_old) @ inverse @ per_state
        off = expected_return(mdp, mixed) - surrogate(mdp, pair.old, mixed)
        assert off == pytest.approx(alpha**2 * coefficient, rel=1e-6, abs=1e-11 * pair.unit)


@given(pairs())
def test_no_bound_is_ever_violated(pair: Pair) -> None:
    along = mixture(pair.old, pair.new, ALPHAS)
    gain = performance_difference(pair.mdp, pair.old, along).gain
    slack = pair.rounding
    gamma, (G, C) = pair.mdp.gamma, cpi_terms(pair.mdp, pair.old, pair.new)
    first_form = ALPHAS * G - ALPHAS**2 * C * (1 - gamma) / (1 - gamma * (1 - ALPHAS))
    assert (gain >= first_form - slack).all()
    assert (first_form >= cpi_bound(pair.mdp, pair.old, pair.new, ALPHAS) - slack).all()
    assert (gain >= kl_bound(pair.mdp, pair.old, along) - slack).all()


@given(pairs())
def test_half_of_the_kl_penalty_is_already_enough(pair: Pair) -> None:
    # Pinsker's inequality gives the constant 2; theorem 1 states 4.
    _, _, adv, rho = evaluate(pair.mdp, pair.old)
    along = mixture(pair.old, pair.new, ALPHAS[:-1])
    weight = 2 * np.abs(adv).max() * pair.mdp.gamma / (1 - pair.mdp.gamma) ** 2
    bound = (along * adv).sum(axis=-1) @ rho - weight * kl(pair.old, along).max(axis=-1)
    gain = performance_difference(pair.mdp, pair.old, along).gain
    assert (gain >= bound - pair.rounding).all()


@given(pairs())
def test_both_bounds_are_0_at_the_old_policy(pair: Pair) -> None:
    assert cpi_bound(pair.mdp, pair.old, pair.new, 0.0) == 0
    assert cpi_terms(pair.mdp, pair.old, pair.old) == (0, 0)
    assert kl_bound(pair.mdp, pair.old, pair.old) == pytest.approx(0, abs=pair.rounding)
    assert largest_steps(pair.mdp, pair.old, pair.old) == LargestSteps(1, 1, 1)


@given(pairs())
def test_the_best_alpha_is_the_maximum_of_the_bound(pair: Pair) -> None:
    grid = np.concatenate([ALPHAS, np.linspace(0, 1, 1001)])
    best = cpi_best_alpha(pair.mdp, pair.old, pair.new)
    at_best = cpi_bound(pair.mdp, pair.old, pair.new, best)
    assert at_best >= cpi_bound(pair.mdp, pair.old, pair.new, grid).max() * (1 - 1e-12)
    G, C = cpi_terms(pair.mdp, pair.old, pair.new)
    if 0 < G < 2 * C:
        assert at_best == pytest.approx(G**2 / (4 * C))


@given(pairs(deterministic=False))
def test_each_largest_step_is_where_its_gain_turns_negative(pair: Pair) -> None:
    mdp, old, new = pair.mdp, pair.old, pair.new
    _, _, adv, rho = evaluate(mdp, old)
    per_state = ((new - old) * adv).sum(axis=1)
    # Below, the sign of the gain is that of a rounding error.
    assume(np.abs(rho @ per_state) >= 1e-6 * pair.unit)
    weight = 4 * np.abs(adv).max() * mdp.gamma / (1 - mdp.gamma) ** 2
    steps = largest_steps(mdp, old, new)
    for step, gain in (
        (steps.cpi, lambda a: cpi_bound(mdp, old, new, a)),
        (
            steps.kl,
            lambda a: a * (rho @ per_state) - weight * kl(old, mixture(old, new, a)).max(-1),
        ),
        (steps.safe, lambda a: a * (evaluate(mdp, mixture(old, new, a)).rho @ per_state)),
    ):
        below = step * np.append(np.geomspace(1e-3, 0.99, 50), 1 - 1e-5)
        assert (gain(below) >= 0).all()
        if step < 1:
            assert gain(np.array(max(step * (1 + 1e-5), 1e-12))) < 0


@given(pairs())
def test_certified_steps_are_safe_and_never_above_their_ceilings(pair: Pair) -> None:
    gamma = pair.mdp.gamma
    G, C = cpi_terms(pair.mdp, pair.old, pair.new)
    assume(not np.array_equal(pair.old, pair.new) and abs(G) >= 1e-6 * pair.unit)
    steps = largest_steps(pair.mdp, pair.old, pair.new)
    assert steps.cpi == pytest.approx(np.clip(G / C, 0, 1) if C > 0 else float(G > 0))
    assert max(steps.cpi, steps.kl) <= steps.safe * (1 + 1e-6)
    if gamma > 0:
        assert steps.cpi <= (1 - gamma) / (2 * gamma) * (1 + 1e-9)
        certified = kl(pair.old, mixture(pair.old, pair.new, steps.kl)).max()
        assert certified <= (1 - gamma) ** 2 / (8 * gamma**2) * (1 + 1e-6)


@given(pairs())
def test_a_batch_has_the_values_of_its_policies_one_by_one(pair: Pair) -> None:
    batch = np.array([[pair.new, pair.old, mixture(pair.old, pair.new, 0.3)]] * 2)
    for function in (
        surrogate,
        surrogate_gain,
        kl_bound,
        lambda *args: performance_difference(*args).gain,
        lambda *args: performance_difference(*args).advantage_sum,
    ):
        values = function(pair.mdp, pair.old, batch)
        single = [function(pair.mdp, pair.old, pi) for pi in batch[0]]
        np.testing.assert_allclose(values, [single] * 2, atol=1e-12 * pair.unit)
    bounds = [cpi_bound(pair.mdp, pair.old, pair.new, alpha) for alpha in ALPHAS]
    np.testing.assert_array_equal(cpi_bound(pair.mdp, pair.old, pair.new, ALPHAS), bounds)


@given(pairs(deterministic=False))
def test_the_sampled_gain_averages_to_the_exact_one(pair: Pair) -> None:
    d = (1 - pair.mdp.gamma) * evaluate(pair.mdp, pair.old).rho
    expectation = sum(
        d[s]
        * pair.old[s, a]
        * sampled_surrogate_gain(pair.mdp, pair.old, pair.new, [s, s], [a, a]).mean
        for s, a in np.ndindex(pair.mdp.shape)
    )
    exact = surrogate_gain(pair.mdp, pair.old, pair.new)
    assert expectation == pytest.approx(exact, abs=1e-10 * pair.unit / (1 - pair.mdp.gamma))


def test_the_sampled_gain_of_three_pulls_by_hand() -> None:
    bandit = TabularMDP(np.ones((1, 2, 1)), np.array([[0.0, 1.0]]), 0.5, np.array([1.0]))
    # Uniform: advantages -1/2 and 1/2; ratios 1/2 and 3/2; terms divided by 1 - gamma.
    pulls = sampled_surrogate_gain(bandit, [[0.5, 0.5]], [[0.25, 0.75]], [0, 0, 0], [0, 1, 1])
    terms = np.array([-0.5, 1.5, 1.5])
    assert pulls.mean == pytest.approx(terms.mean())
    assert pulls.standard_error == pytest.approx(np.sqrt(terms.var(ddof=1) / 3))


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9, 0.99])
@pytest.mark.parametrize(("b", "c"), [(0.05, 0.95), (0.3, 0.31), (1.0, 0.0)])
def test_the_trap_in_closed_form(gamma: float, b: float, c: float) -> None:
    """b and c: probability of being bold, old and new, in both states."""
    trap = two_state_trap(gamma)
    old, new = (np.array([[1 - x, x]] * 2) for x in (b, c))
    later = gamma / (1 - gamma)

    def J(x: float) -> float:  # after the first step the state is the pit with probability x
        return 0.2 * x + later * (0.2 * x * (1 - x) - x * x)

    bold = np.array([0.2, -1.0]) - 1.2 * gamma * b  # q(s, bold) - q(s, careful)
    rho = np.array([1 + later * (1 - b), later * b])
    per_state = (c - b) * bold
    assert performance_difference(trap, old, new).gain == pytest.approx(J(c) - J(b))
    assert surrogate_gain(trap, old, new) == pytest.approx(rho @ per_state)
    penalty = 2 * gamma * np.abs(per_state).max() / (1 - gamma) ** 2
    assert cpi_terms(trap, old, new) == pytest.approx((rho @ per_state, penalty))


def test_where_the_trap_turns_the_gain_into_a_loss() -> None:
    # J is a parabola in the probability x of being bold: J(x) = J(b) again at its other root.
    gamma, b = 0.9, 0.05
    later = gamma / (1 - gamma)
    other_root = 0.2 / (1.2 * later) * (1 + later) - b
    careful = np.array([[1 - b, b]] * 2)
    safe = largest_steps(two_state_trap(gamma), careful, 1 - careful).safe
    assert safe == pytest.approx((other_root - b) / (1 - 2 * b), rel=1e-6)


@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_the_chain_in_closed_form(gamma: float) -> None:
    """Without slip: left stays at the left end, right walks to the other end and stays there."""
    n = 6
    corridor = chain(n, gamma, slip=0.0)
    left, right = (np.tile(row, (n, 1)) for row in ([1.0, 0.0], [0.0, 1.0]))
    gain = (gamma ** (n - 1) - 0.1) / (1 - gamma)
    promise = -0.1 * (1 + gamma) / (1 - gamma)  # left's data know the left end only
    assert performance_difference(corridor, left, right).gain == pytest.approx(gain)
    assert surrogate_gain(corridor, left, right) == pytest.approx(promise)
    assert cpi_best_alpha(corridor, left, right) == 0
    assert largest_steps(corridor, left, right)[:2] == (0, 0)
    assert kl_bound(corridor, left, right) == -np.inf


def test_without_a_future_the_bounds_are_the_surrogate_and_that_is_the_gain() -> None:
    mdp = random_mdp(gamma=0.0, rng=np.random.default_rng(0))
    old, best = uniform(*mdp.shape), greedy(mdp.r)
    gain = performance_difference(mdp, old, best).gain
    assert kl_bound(mdp, old, best) == pytest.approx(gain)
    assert cpi_bound(mdp, old, best, 1.0) == pytest.approx(gain)
    assert largest_steps(mdp, old, best) == LargestSteps(1, 1, 1)
    assert largest_steps(mdp, old, greedy(-mdp.r)) == LargestSteps(0, 0, 0)


MDP = random_mdp(3, 2, rng=np.random.default_rng(0))
FINE = uniform(3, 2)
NAN = np.where(np.eye(3, 2) > 0, np.nan, FINE)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: performance_difference(MDP, FINE, FINE.T), "new must have shape (..., 3, 2); got"),
        (lambda: performance_difference(MDP, NAN, FINE), "old must be finite; old[0, 0] is nan"),
        (lambda: surrogate(MDP, FINE.T, FINE), "old must have shape (..., 3, 2); got (2, 3)"),
        (lambda: kl_bound(MDP, -FINE, FINE), "old must not be negative; old[0, 0] is -0.5"),
        (lambda: surrogate_gain(MDP, FINE, FINE + 0.5), "new[0] must sum to 1 over its last axis"),
        (
            lambda: kl_bound(MDP, [FINE, FINE], FINE),
            "old must be one policy of shape (3, 2); got (2, 3, 2)",
        ),
        (lambda: kl_bound(MDP, FINE, NAN), "new must be finite; new[0, 0] is nan"),
        (lambda: cpi_terms(MDP, FINE.T, FINE), "pi must have shape (..., 3, 2); got (2, 3)"),
        (lambda: cpi_terms(MDP, FINE, [FINE]), "target must be one policy of shape (3, 2); got"),
        (lambda: cpi_bound(MDP, FINE, FINE, [0, 1.5]), "alpha must lie in [0, 1]; got [0, 1.5]"),
        (lambda: cpi_bound(MDP, FINE, FINE, np.nan), "alpha must lie in [0, 1]; got nan"),
        (lambda: cpi_bound(MDP, FINE, FINE, []), "alpha must lie in [0, 1]; got []"),
        (lambda: upper_bounds(MDP, FINE, FINE, -0.1), "alpha must lie in [0, 1]; got -0.1"),
        (lambda: upper_bounds(MDP, FINE, [FINE], 0.1), "target must be one policy of shape (3, 2)"),
        (lambda: cpi_best_alpha(MDP, NAN, FINE), "pi must be finite; pi[0, 0] is nan"),
        (lambda: largest_steps(MDP, FINE, -FINE), "target must not be negative; target[0, 0] is"),
        (
            lambda: sampled_surrogate_gain(MDP, FINE, FINE, [0], [0]),
            "states and actions must be 1-d, of one length of at least 2; got (1,) and (1,)",
        ),
        (
            lambda: sampled_surrogate_gain(MDP, FINE, FINE, [], []),
            "states and actions must be 1-d, of one length of at least 2; got (0,) and (0,)",
        ),
        (
            lambda: sampled_surrogate_gain(MDP, np.eye(2)[[0, 0, 0]], FINE, [0, 2], [0, 1]),
            "old gives probability 0 to sample 1 (state 2, action 1)",
        ),
        (
            lambda: sampled_surrogate_gain(MDP, [FINE], FINE, [0, 1], [0, 1]),
            "old must be one policy of shape (3, 2); got (1, 3, 2)",
        ),
    ],
)
def test_bad_input_is_named(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_batches_of_both_policies_broadcast() -> None:
    rng = np.random.default_rng(0)
    olds, news = (np.stack([random_policy(3, 2, rng=rng) for _ in range(n)]) for n in (2, 4))
    pairs = performance_difference(MDP, olds, news[:, None])
    assert pairs.residual.max() < 1e-12
    promised = surrogate_gain(MDP, olds, news[:, None])
    for i, new in enumerate(news):
        for j, old in enumerate(olds):
            assert pairs.gain[i, j] == pytest.approx(performance_difference(MDP, old, new).gain)
            assert promised[i, j] == pytest.approx(float(surrogate_gain(MDP, old, new)))


def test_the_lemma_is_exact_for_policies_given_in_float32() -> None:
    rng = np.random.default_rng(1)
    old, new = (random_policy(3, 2, rng=rng).astype(np.float32) for _ in range(2))
    assert performance_difference(MDP, old, new).residual < 1e-14
    assert largest_steps(MDP, old, old) == LargestSteps(1, 1, 1)


def cubic_return(a: float, width: float) -> TabularMDP:
    """Make J(pi_alpha) - J(pi) = alpha ((alpha - a)^2 - width^2) for pi = action 0 and action 1.

    Three choices, then the end, and a reward that knows how often the choice was action 1.
    """
    cubic = [0.0, a**2 - width**2, -2 * a, 1.0]
    reward = [sum(comb(k, i) / comb(3, i) * cubic[i] for i in range(k + 1)) for k in range(4)]
    states = {(t, k): i for i, (t, k) in enumerate((t, k) for t in range(3) for k in range(t + 1))}
    gamma, end = 0.9, len(states)
    P, r = np.zeros((end + 1, 2, end + 1)), np.zeros((end + 1, 2))
    P[end, :, end] = 1
    for (t, k), s in states.items():
        for action in (0, 1):
            P[s, action, states.get((t + 1, k + action), end)] = 1
            r[s, action] = reward[k + action] / gamma**2 if t == 2 else 0.0
    return TabularMDP(P, r, gamma, np.eye(end + 1)[0])


@pytest.mark.parametrize("a", [1e-4, 0.0312, 0.5013, 0.98765])
@pytest.mark.parametrize("share", [0.1, 1e-3, 1e-4])
def test_a_narrow_loss_on_the_way_ends_the_safe_step(a: float, share: float) -> None:
    mdp = cubic_return(a, share * a)
    old, new = (np.tile(row, (mdp.shape[0], 1)) for row in ([1.0, 0.0], [0.0, 1.0]))
    dip = performance_difference(mdp, old, mixture(old, new, a)).gain
    assert dip == pytest.approx(-a * (share * a) ** 2, abs=1e-15)
    safe = largest_steps(mdp, old, new).safe
    assert safe == pytest.approx(a * (1 - share), abs=1e-15 / (share * a**2))


def test_a_gain_that_comes_near_0_and_stays_above_is_safe_to_the_end() -> None:
    mdp = cubic_return(0.5, 0.0)
    mdp = TabularMDP(mdp.P, mdp.r + 1e-9 * np.array([0.0, 1.0]), mdp.gamma, mdp.mu)
    old, new = (np.tile(row, (mdp.shape[0], 1)) for row in ([1.0, 0.0], [0.0, 1.0]))
    assert largest_steps(mdp, old, new).safe == 1.0

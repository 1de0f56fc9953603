"""Mirror descent against finite differences, the dense Fisher matrix, an optimizer and theory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from companion.mdp import TabularMDP, evaluate, expected_return, random_mdp, solve_values
from companion.mirror import (
    mirror_step,
    natural_gradient,
    optimal_return,
    policy_gradient,
    policy_iteration,
    run,
    tabular_fisher,
)
from companion.mirror_example import comparison, npg_gap_bound, poor_start, sized_mdp
from companion.policy import FloatArray, greedy, kl, random_policy, score, softmax, uniform


def drawn(seed: int) -> tuple[TabularMDP, FloatArray]:
    rng = np.random.default_rng(seed)
    return random_mdp(6, 3, rng.uniform(0.3, 0.98), rng=rng), rng.normal(size=(6, 3))


mdps_and_logits = st.builds(drawn, st.integers(0, 2**32))
MDP = random_mdp(rng=np.random.default_rng(0))


def objective(p: FloatArray, pi: FloatArray, q: FloatArray, eta: float) -> FloatArray:
    result: FloatArray = eta * (p * q).sum(axis=-1) - kl(p, pi)
    return result


@given(mdps_and_logits)
def test_policy_gradient_equals_finite_differences(pair: tuple[TabularMDP, FloatArray]) -> None:
    mdp, logits = pair
    h = 1e-5
    shifts = h * np.eye(logits.size).reshape(-1, *logits.shape)
    slope = expected_return(mdp, softmax(logits + shifts))
    slope = (slope - expected_return(mdp, softmax(logits - shifts))) / (2 * h)
    pi = softmax(logits)
    gradient = policy_gradient(mdp, pi, solve_values(mdp, pi))
    np.testing.assert_allclose(gradient.ravel(), slope, atol=1e-6)


@given(mdps_and_logits)
def test_natural_gradient_solves_with_the_fisher_matrix(
    pair: tuple[TabularMDP, FloatArray],
) -> None:
    mdp, logits = pair
    pi = softmax(logits)
    values = solve_values(mdp, pi)
    gradient = policy_gradient(mdp, pi, values)
    solved = np.linalg.lstsq(tabular_fisher(mdp, pi), gradient.ravel())[0].reshape(mdp.shape)
    difference = solved - natural_gradient(mdp, pi, values)
    spread = difference - difference.mean(axis=1, keepdims=True)
    assert np.abs(spread).max() < 1e-8 * (1 + np.abs(solved).max())


def test_fisher_is_the_covariance_of_the_score() -> None:
    pi = random_policy(*MDP.shape, rng=np.random.default_rng(1))
    d = (1 - MDP.gamma) * evaluate(MDP, pi).rho
    blocks = np.einsum("s,sa,sab,sac->sbc", d, pi, score(pi), score(pi))
    matrix = tabular_fisher(MDP, pi).reshape(20, 4, 20, 4)
    np.testing.assert_allclose(np.einsum("sasb->sab", matrix), blocks, atol=1e-15)
    assert np.count_nonzero(matrix) == 20 * 16
    assert np.linalg.matrix_rank(tabular_fisher(MDP, pi)) == 20 * 3


@given(mdps_and_logits, st.floats(-4, 3))
def test_mirror_step_is_the_natural_step(
    pair: tuple[TabularMDP, FloatArray], log_eta: float
) -> None:
    mdp, logits = pair
    eta, pi = 10**log_eta, softmax(logits)
    values = solve_values(mdp, pi)
    step = eta * (1 - mdp.gamma) * natural_gradient(mdp, pi, values)
    stepped = mirror_step(pi, values.q, eta)
    np.testing.assert_allclose(softmax(logits + step), stepped, rtol=1e-9, atol=1e-12)


@given(mdps_and_logits, st.floats(-2, 2))
def test_mirror_step_maximizes_its_objective(
    pair: tuple[TabularMDP, FloatArray], log_eta: float
) -> None:
    mdp, logits = pair
    eta, pi = 10**log_eta, softmax(logits)
    q = solve_values(mdp, pi).q
    best = objective(mirror_step(pi, q, eta), pi, q, eta)
    rng = np.random.default_rng(0)
    others = np.stack([random_policy(*mdp.shape, rng=rng, concentration=0.5) for _ in range(50)])
    others = np.concatenate([others, pi[None], greedy(q)[None]])
    assert (objective(others, pi, q, eta) <= best + 1e-9 * (1 + np.abs(best))).all()


def test_mirror_step_equals_a_numerical_optimizer() -> None:
    pi, q, eta = np.array([[0.6, 0.3, 0.1]]), np.array([[0.0, 1.0, 2.0]]), 0.7
    found = optimize.minimize(
        lambda p: -objective(p[None] / p.sum(), pi, q, eta).item(),
        pi[0],
        bounds=[(1e-9, 1)] * 3,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(found.x, mirror_step(pi, q, eta)[0], atol=1e-6)


def test_mirror_step_between_its_limits() -> None:
    """eta to 0: the old policy, with KL eta^2 Var(q)/2; eta to infinity: the greedy policy."""
    pi = random_policy(*MDP.shape, rng=np.random.default_rng(2))
    q = evaluate(MDP, pi).q
    variance = (pi * q**2).sum(axis=1) - (pi * q).sum(axis=1) ** 2
    np.testing.assert_allclose(kl(mirror_step(pi, q, 1e-4), pi), 1e-8 * variance / 2, rtol=1e-3)
    np.testing.assert_allclose(mirror_step(pi, q, 1e6), greedy(q), atol=1e-12)


def test_mirror_step_finds_the_better_of_a_hopeless_action() -> None:
    """An action ruled out stays so; one of probability 1e-300 may become the only one."""
    assert mirror_step([[1.0, 0.0]], [[0.0, 1.0]], 1e5).tolist() == [[1, 0]]
    assert mirror_step([[1.0, 1e-300]], [[0.0, 1.0]], 1e5).tolist() == [[0, 1]]


def test_run_makes_the_steps_it_says() -> None:
    for direction in (policy_gradient, natural_gradient):
        logits = np.zeros(MDP.shape)
        gaps = []
        for k in range(4):
            pi = softmax(logits)
            gaps.append(optimal_return(MDP) - expected_return(MDP, pi))
            if k < 3:
                logits = logits + 0.5 * 2.0**k * direction(MDP, pi, solve_values(MDP, pi))
        result = run(MDP, direction, np.zeros(MDP.shape), 0.5, 3, growth=2.0)
        np.testing.assert_allclose(result.gap, gaps, rtol=1e-12)
        np.testing.assert_allclose(result.logits, logits, rtol=1e-12)


def test_a_batch_of_runs_equals_the_runs() -> None:
    starts = np.stack([np.zeros(MDP.shape), poor_start(MDP)])
    etas = np.array([[0.1, 1.0], [1.0, 10.0]])
    for direction in (policy_gradient, natural_gradient):
        together = run(MDP, direction, starts, etas, 30)
        assert together.gap.shape == (31, 2, 2)
        for i, j in np.ndindex(2, 2):
            alone = run(MDP, direction, starts[j], etas[i, j], 30)
            np.testing.assert_allclose(together.gap[:, i, j], alone.gap, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(together.logits[i, j], alone.logits, rtol=1e-9, atol=1e-9)


@given(mdps_and_logits, st.floats(-2, 2))
def test_natural_gradient_improves_in_every_state(
    pair: tuple[TabularMDP, FloatArray], log_eta: float
) -> None:
    mdp, logits = pair
    v = [
        evaluate(mdp, softmax(run(mdp, natural_gradient, logits, 10**log_eta, k).logits)).v
        for k in (1, 2, 3)
    ]
    v.insert(0, evaluate(mdp, softmax(logits)).v)
    assert (np.diff(v, axis=0) >= -1e-12).all()


@given(mdps_and_logits, st.floats(-2, 2))
def test_natural_gradient_keeps_the_bound_of_one_over_k(
    pair: tuple[TabularMDP, FloatArray], log_eta: float
) -> None:
    """gap_k <= sum_s rho*(s) [KL(pi* || pi_0)(s) / eta + v*(s) - v_0(s)] / (k + 1)."""
    mdp, logits = pair
    eta = 10**log_eta
    q = evaluate(mdp, softmax(logits)).q
    for _ in range(20):
        best = evaluate(mdp, greedy(q))
        q = best.q
    start = evaluate(mdp, softmax(logits))
    bound = best.rho @ (kl(greedy(q), softmax(logits)) / eta + best.v - start.v)
    step = eta * (1 - mdp.gamma)
    gap = run(mdp, natural_gradient, logits, step, 50).gap
    assert (gap <= bound / np.arange(1, 52) + 1e-12).all()
    ours = npg_gap_bound(mdp, logits, step, 50)
    np.testing.assert_allclose(ours, bound / np.arange(1, 52), rtol=1e-9)


def test_growing_steps_converge_at_rate_gamma() -> None:
    """Under the long-run distribution nu of pi*: gap_k <= gamma^k (gap_0 + KL_0 / (gamma eta))."""
    q = evaluate(MDP, uniform(*MDP.shape)).q
    for _ in range(20):
        q = evaluate(MDP, greedy(q)).q
    P_star = np.einsum("sa,sat->st", greedy(q), MDP.P)
    nu = np.linalg.matrix_power(P_star, 4096)[0]
    nu /= nu.sum()
    mdp = TabularMDP(MDP.P, MDP.r, MDP.gamma, nu)
    for eta in (0.1, 1.0, 10.0):
        result = run(mdp, natural_gradient, poor_start(mdp), 0.1 * eta, 200, growth=1 / 0.9)
        divergence = nu @ kl(greedy(q), softmax(poor_start(mdp)))
        bound = 0.9 ** np.arange(201) * (result.gap[0] + divergence / (0.9 * eta))
        assert (result.gap <= bound + 1e-12).all()


@given(mdps_and_logits)
def test_policy_iteration_improves_and_ends_at_the_optimum(
    pair: tuple[TabularMDP, FloatArray],
) -> None:
    mdp, logits = pair
    gap = policy_iteration(mdp, logits, 30)
    assert (np.diff(gap) <= 1e-12).all()
    assert np.abs(gap[-1]) < 1e-11
    one = expected_return(mdp, greedy(evaluate(mdp, softmax(logits)).q))
    assert gap[1] == pytest.approx(optimal_return(mdp) - one, abs=1e-11)


def test_a_batch_of_policy_iterations_equals_the_iterations() -> None:
    starts = np.stack([np.zeros(MDP.shape), poor_start(MDP)])
    together = policy_iteration(MDP, starts, 10)
    for j, start in enumerate(starts):
        alone = policy_iteration(MDP, start, 10)
        np.testing.assert_allclose(together[:, j], alone, rtol=1e-12, atol=1e-12)


def test_poor_start_is_almost_always_wrong() -> None:
    pi = softmax(poor_start(MDP))
    worst = evaluate(MDP, uniform(*MDP.shape)).q.argmin(axis=1)
    np.testing.assert_allclose(pi[np.arange(20), worst], np.exp(8) / (np.exp(8) + 3))


def test_comparison_names_every_run() -> None:
    gaps = comparison(MDP, (2.0,), (0.3,), iterations=20, growth=1.1)
    assert list(gaps) == [
        (method, start)
        for start in ("uniform", "poor")
        for method in ("policy gradient, eta 2", "natural PG, eta 0.3", "policy iteration")
    ]
    alone = run(MDP, policy_gradient, poor_start(MDP), 2.0, 20, growth=1.1).gap
    np.testing.assert_allclose(gaps["policy gradient, eta 2", "poor"], alone, rtol=1e-10)
    alone = run(MDP, natural_gradient, np.zeros(MDP.shape), 0.3, 20, growth=1.1).gap
    np.testing.assert_allclose(gaps["natural PG, eta 0.3", "uniform"], alone, rtol=1e-8)


def test_sized_mdps_reach_as_few_states_whatever_their_number() -> None:
    """The chance that an action taken twice leads to the same state is (2/n + 1)/3: Dirichlet."""
    for n in (20, 80, 320):
        mdp = sized_mdp(n, rng=np.random.default_rng(n))
        assert mdp.shape == (n, 4)
        assert (mdp.P**2).sum(axis=-1).mean() == pytest.approx((2 / n + 1) / 3, rel=0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eta": 0.0}, "eta must be above 0; got 0.0"),
        ({"eta": np.nan}, "eta must be finite"),
        ({"eta": [1.0, -1.0]}, "eta must be above 0"),
        ({"start": np.zeros((3, 20, 4)), "eta": [1.0, 2.0]}, r"eta must broadcast with .* \(3,\)"),
        ({"growth": 0.0}, "growth must be finite and above 0; got 0.0"),
        ({"growth": np.inf}, "growth must be finite and above 0; got inf"),
        ({"iterations": 0}, "iterations must be a whole number of at least 1; got 0"),
        ({"start": np.zeros((4, 20))}, r"start must have shape \(..., 20, 4\); got \(4, 20\)"),
        ({"start": np.full((20, 4), np.nan)}, r"start must be finite; start\[0, 0\] is nan"),
    ],
)
def test_run_refuses_bad_input(change: dict[str, Any], message: str) -> None:
    good = {"start": np.zeros(MDP.shape), "eta": 1.0, "iterations": 3}
    with pytest.raises(ValueError, match=message):
        run(MDP, natural_gradient, **(good | change))


def test_other_bad_input_is_refused() -> None:
    pi, q = uniform(2, 2), np.zeros((2, 2))
    for eta in (0, -1, np.inf, np.nan):
        with pytest.raises(ValueError, match="eta must be finite and above 0; got"):
            mirror_step(pi, q, eta)
    with pytest.raises(ValueError, match="q must be finite"):
        mirror_step(pi, [[np.nan, 0], [0, 0]], 1.0)
    with pytest.raises(ValueError, match=r"q must have pi's shape \(2, 2\); got \(1, 2\)"):
        mirror_step(pi, [[0, 0]], 1.0)
    with pytest.raises(ValueError, match=r"q must have pi's shape \(2, 2\); got \(3, 2, 2\)"):
        mirror_step(pi, np.zeros((3, 2, 2)), 1.0)
    with pytest.raises(ValueError, match=r"pi\[0\] must sum to 1"):
        mirror_step([[0.5, 0.6]], [[0, 0]], 1.0)
    with pytest.raises(ValueError, match=r"pi must have shape \(..., 20, 4\); got \(2, 2\)"):
        tabular_fisher(MDP, pi)
    with pytest.raises(ValueError, match=r"start must have shape"):
        policy_iteration(MDP, q, 3)
    with pytest.raises(ValueError, match="iterations must be a whole number"):
        policy_iteration(MDP, np.zeros(MDP.shape), 0)
    with pytest.raises(ValueError, match="logit must be finite and at least 0; got -1"):
        poor_start(MDP, -1)
    with pytest.raises(ValueError, match="eta must be finite and above 0; got 0"):
        npg_gap_bound(MDP, np.zeros(MDP.shape), 0, 3)
    with pytest.raises(ValueError, match="n_states must be a whole number of at least 1; got 0"):
        sized_mdp(0, rng=np.random.default_rng(0))

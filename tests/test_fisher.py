"""Mean KL, the dense Fisher matrix and the Fisher-vector product, against independent routes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy
from torch import Tensor, nn

from companion.fisher import fisher_matrix, fisher_vector_product, mean_kl
from tests.policies import KINDS, batch, moved, parameters

SEEDS = st.integers(0, 2**31 - 1)
each_kind = pytest.mark.parametrize("kind", KINDS)


def _vector(policy: nn.Module, seed: int = 1) -> Tensor:
    flat = parameters(policy)
    return torch.randn(flat.shape, dtype=flat.dtype, generator=torch.Generator().manual_seed(seed))


def _kl_gradient(policy: nn.Module, obs: Tensor, step: Tensor) -> Tensor:
    """Differentiate the KL from the policy to the policy moved by a step, in the step."""
    step = step.clone().requires_grad_()
    old = policy(obs).detach().log_softmax(-1)
    new = torch.func.functional_call(policy, moved(policy, step), (obs,)).log_softmax(-1)
    difference = torch.where(old > -torch.inf, old - new, 0.0)
    (gradient,) = torch.autograd.grad((old.exp() * difference).sum() / len(obs), step)
    return gradient


@given(seed=SEEDS, scale=st.floats(0.01, 5.0))
@settings(max_examples=40, deadline=None)
def test_mean_kl_is_that_of_the_distributions(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    old, new = scale * rng.normal(size=(2, 5, 3))
    p, q = (np.exp(x) / np.exp(x).sum(-1, keepdims=True) for x in (old, new))
    measured = float(mean_kl(torch.tensor(old), torch.tensor(new)))
    assert measured == pytest.approx(entropy(p, q, axis=-1).mean(), rel=1e-9, abs=1e-15)


@given(seed=SEEDS, shift=st.floats(-50.0, 50.0), change=st.floats(1e-3, 5.0))
@settings(max_examples=40, deadline=None)
def test_mean_kl_is_zero_only_at_equality(seed: int, shift: float, change: float) -> None:
    logits = torch.tensor(np.random.default_rng(seed).normal(size=(4, 3)))
    assert float(mean_kl(logits, logits + shift)) == pytest.approx(0.0, abs=1e-13)
    other = logits.clone()
    other[seed % 4, seed % 3] += change
    variation = (logits.softmax(-1) - other.softmax(-1)).abs().sum(-1) / 2.0
    pinsker = 2.0 * float((variation**2).mean())
    assert float(mean_kl(logits, other)) > 0.99 * pinsker > 0.0


def test_mean_kl_of_impossible_actions() -> None:
    half = torch.tensor([[0.0, 0.0, -torch.inf]])
    assert float(mean_kl(half, half)) == 0.0
    assert float(mean_kl(half, torch.zeros(1, 3))) == pytest.approx(math.log(1.5))
    assert float(mean_kl(torch.zeros(1, 3), half)) == math.inf


@each_kind
def test_fisher_matrix_is_the_hessian_of_the_mean_kl(kind: str) -> None:
    """TRPO-1, exercise 20.3: at theta_old the mean KL has gradient 0 and Hessian F."""
    policy, obs, *_ = batch(kind)
    zero = torch.zeros_like(parameters(policy))
    torch.testing.assert_close(_kl_gradient(policy, obs, zero), zero, atol=1e-15, rtol=0.0)
    h = 1e-5
    columns = [
        (_kl_gradient(policy, obs, h * e) - _kl_gradient(policy, obs, -h * e)) / (2 * h)
        for e in torch.eye(len(zero), dtype=zero.dtype)
    ]
    torch.testing.assert_close(fisher_matrix(policy, obs), torch.stack(columns), atol=1e-8, rtol=0)


@each_kind
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-14), (torch.float32, 1e-6)])
def test_product_is_that_of_the_dense_matrix(kind: str, dtype: torch.dtype, atol: float) -> None:
    policy, obs, *_ = batch(kind, dtype)
    product, F = fisher_vector_product(policy, obs, damping=0.1), fisher_matrix(policy, obs)
    for seed in range(3):
        v = _vector(policy, seed)
        torch.testing.assert_close(product(v), F @ v + 0.1 * v, atol=atol, rtol=1e-5)
        assert product(v).dtype == dtype


@given(seed=SEEDS, kind=st.sampled_from(sorted(KINDS)))
@settings(max_examples=25, deadline=None)
def test_product_is_the_derivative_of_the_kl_gradient(seed: int, kind: str) -> None:
    policy, obs, *_ = batch(kind, seed=seed)
    v, h = _vector(policy, seed), 1e-5
    v = v / v.norm()
    slope = (_kl_gradient(policy, obs, h * v) - _kl_gradient(policy, obs, -h * v)) / (2 * h)
    torch.testing.assert_close(fisher_vector_product(policy, obs)(v), slope, atol=1e-8, rtol=1e-6)


def test_tabular_softmax_has_one_null_direction_per_state() -> None:
    policy, obs, *_ = batch("tabular")
    visited = sorted(set(obs.tolist()))
    rank = torch.linalg.matrix_rank(fisher_matrix(policy, obs), hermitian=True)
    assert int(rank) == len(visited) * 2
    shift = torch.zeros(4, 3, dtype=torch.float64)
    shift[visited[0]] = 1.0
    product = fisher_vector_product(policy, obs)(shift.flatten())
    torch.testing.assert_close(product, torch.zeros_like(product), atol=1e-16, rtol=0.0)


def test_product_leaves_the_policy_alone_and_works_without_grad_mode() -> None:
    policy, obs, *_ = batch("with a critic")
    before, v = parameters(policy), _vector(policy)
    with torch.no_grad():
        inside = fisher_vector_product(policy, obs)(v)
    assert torch.equal(inside, fisher_vector_product(policy, obs)(v))
    assert not inside.requires_grad
    assert all(w.grad is None for w in policy.parameters())
    assert torch.equal(parameters(policy), before)


def test_product_refuses_parameters_that_have_moved() -> None:
    policy, obs, *_ = batch("tanh network")
    product, v = fisher_vector_product(policy, obs), _vector(policy)
    with torch.no_grad():
        for w in policy.parameters():
            w.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product(v)


def test_errors_say_what_is_wrong() -> None:
    policy, obs, *_ = batch("tanh network")
    with pytest.raises(ValueError, match=r"damping must be finite and at least 0; got -0\.1"):
        fisher_vector_product(policy, obs, damping=-0.1)
    with pytest.raises(ValueError, match="damping must be finite"):
        fisher_vector_product(policy, obs, damping=math.nan)
    with pytest.raises(ValueError, match="at least one observation"):
        fisher_vector_product(policy, obs[:0])
    with pytest.raises(ValueError, match="one row of logits for each"):
        fisher_matrix(nn.Flatten(0), obs)
    with pytest.raises(ValueError, match=r"NaN for obs\[2\]"):
        fisher_vector_product(policy, obs.index_fill(0, torch.tensor([2]), math.nan))
    with pytest.raises(ValueError, match="no parameter that requires a gradient"):
        fisher_matrix(policy.requires_grad_(False), obs)
    with pytest.raises(ValueError, match=r"one shape \(N, A\)"):
        mean_kl(torch.zeros(2, 3), torch.zeros(3, 3))
    with pytest.raises(ValueError, match="N at least 1"):
        mean_kl(torch.zeros(0, 3), torch.zeros(0, 3))
    with pytest.raises(ValueError, match="A at least 1"):
        mean_kl(torch.zeros(3, 0), torch.zeros(3, 0))


@pytest.mark.parametrize("row", [[math.nan, 0.0], [math.inf, 0.0], [-math.inf, -math.inf]])
def test_logits_without_a_softmax_are_named_with_their_row(row: list[float]) -> None:
    bad, good = torch.tensor([[0.0, 1.0], row]), torch.zeros(2, 2)
    message = rf"must be below \+inf, no NaN, .*; {{}}\[1\] is {max(row)}"
    with pytest.raises(ValueError, match="^old_logits " + message.format("old_logits")):
        mean_kl(bad, good)
    with pytest.raises(ValueError, match="^logits " + message.format("logits")):
        mean_kl(good, bad)
    masked = torch.tensor([[0.0, -math.inf]])
    assert float(mean_kl(masked, torch.zeros(1, 2))) == pytest.approx(math.log(2))
    assert float(mean_kl(torch.zeros(1, 2), masked)) == math.inf

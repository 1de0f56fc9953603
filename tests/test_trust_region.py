"""The natural step, the local surrogate, the line search and TRPO's whole step."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn

from companion.conjugate_gradient import conjugate_gradient
from companion.fisher import fisher_matrix, fisher_vector_product
from companion.trust_region import line_search, local_surrogate, natural_step, trpo_step
from tests.bench_trpo import plain_trpo_step
from tests.policies import KINDS, batch, moved, parameters

SEEDS = st.integers(0, 2**31 - 1)
KIND = st.sampled_from(sorted(KINDS))
Array = NDArray[np.float64]
each_kind = pytest.mark.parametrize("kind", KINDS)


def _gain_and_kl(before: nn.Module, after: nn.Module, *data: Tensor) -> tuple[float, float]:
    """Compute both with loops over samples and actions, in Python floats."""
    obs, actions, adv = data
    old, new = (policy(obs).double().softmax(-1).tolist() for policy in (before, after))
    gain = kl = 0.0
    for p, q, action, advantage in zip(old, new, actions.tolist(), adv.tolist(), strict=True):
        gain += (q[action] / p[action] - 1.0) * advantage / len(obs)
        kl += sum(x * math.log(x / y) for x, y in zip(p, q, strict=True) if x > 0) / len(obs)
    return gain, kl


@given(seed=SEEDS, delta=st.floats(1e-6, 10.0))
@settings(max_examples=40, deadline=None)
def test_natural_step_has_quadratic_kl_delta_and_the_predicted_gain(
    seed: int, delta: float
) -> None:
    """TRPO-1, exercise 20.3."""
    rng = np.random.default_rng(seed)
    root, g = rng.normal(size=(9, 6)), rng.normal(size=6)
    F: Array = root.T @ root
    d = np.asarray(np.linalg.solve(F, g), dtype=np.float64)
    step = natural_step(d, float(d @ F @ d), delta)
    assert step @ F @ step / 2.0 == pytest.approx(delta, rel=1e-9)
    assert g @ step == pytest.approx(math.sqrt(2.0 * delta * (g @ d)), rel=1e-9)


@given(seed=SEEDS, size=st.floats(1e-3, 1e3))
@settings(max_examples=60, deadline=None)
def test_any_other_direction_of_the_same_quadratic_kl_gains_less(seed: int, size: float) -> None:
    """TRPO-2."""
    rng = np.random.default_rng(seed)
    root, g = rng.normal(size=(9, 6)), rng.normal(size=6)
    F: Array = root.T @ root
    d = np.asarray(np.linalg.solve(F, g), dtype=np.float64)
    other = d + size * np.linalg.norm(d) * rng.normal(size=6)
    best = g @ natural_step(d, float(d @ F @ d), 0.01)
    gain = g @ natural_step(other, float(other @ F @ other), 0.01)
    cosine = (other @ F @ d) / math.sqrt((other @ F @ other) * (d @ F @ d))
    assert gain == pytest.approx(cosine * best, rel=1e-6, abs=1e-12)
    assert gain < best


def test_natural_step_of_no_direction_or_no_curvature() -> None:
    assert (natural_step(np.zeros(2), 0.0, 0.01) == 0.0).all()
    with pytest.raises(ValueError, match=r"curvature.*got 0\.0 \(raise damping\)"):
        natural_step(np.ones(2), 0.0, 0.01)
    with pytest.raises(ValueError, match="delta must be finite and above 0; got 0"):
        natural_step(np.ones(2), 1.0, 0)


@each_kind
def test_surrogate_gradient_is_the_slope_of_its_gain(kind: str) -> None:
    policy, *data = batch(kind)
    g, evaluate = local_surrogate(policy, *data)
    h = 1e-6
    slopes = [
        (evaluate(h * e)[0] - evaluate(-h * e)[0]) / (2 * h)
        for e in torch.eye(len(g), dtype=g.dtype)
    ]
    torch.testing.assert_close(g, torch.tensor(slopes, dtype=g.dtype), atol=1e-9, rtol=1e-6)


@given(seed=SEEDS, kind=KIND, size=st.floats(1e-3, 2.0))
@settings(max_examples=25, deadline=None)
def test_surrogate_evaluates_steps_without_taking_them(seed: int, kind: str, size: float) -> None:
    policy, *data = batch(kind, seed=seed)
    before = parameters(policy)
    g, evaluate = local_surrogate(policy, *data)
    step = size * g / g.norm()
    measured = evaluate(step)
    assert torch.equal(parameters(policy), before)
    after, *_ = batch(kind, seed=seed)
    after.load_state_dict(moved(after, step), strict=False)
    assert measured == pytest.approx(_gain_and_kl(policy, after, *data), rel=1e-9, abs=1e-12)
    assert evaluate(torch.zeros_like(step)) == (0.0, 0.0)


def test_surrogate_stays_at_the_parameters_that_collected_the_batch() -> None:
    policy, *data = batch("tanh network")
    g, evaluate = local_surrogate(policy, *data)
    before = evaluate(g)
    assert trpo_step(policy, *data).search.accepted
    assert evaluate(g) == before


def test_kl_of_a_short_undamped_step_is_delta() -> None:
    """TRPO-1: the quadratic model is exact in the limit; with damping the KL stays below."""
    policy, *data = batch("tanh network")
    g, evaluate = local_surrogate(policy, *data)
    shares = []
    for damping in (0.0, 0.1):
        product = fisher_vector_product(policy, data[0], damping)
        d = conjugate_gradient(product, g, iterations=3)
        step = natural_step(d, float(d @ product(d)), delta=1e-8)
        shares.append(evaluate(step)[1] / 1e-8)
    assert shares[0] == pytest.approx(1.0, abs=1e-3)
    assert shares[1] < 0.99


NUMBERS = st.one_of(st.floats(-1.0, 1.0), st.just(math.nan), st.sampled_from([-math.inf, math.inf]))


@given(table=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=12))
@settings(max_examples=200, deadline=None)
def test_line_search_takes_the_first_that_passes_and_never_another(
    table: list[tuple[float, float]],
) -> None:
    """TRPO-5."""
    delta, halvings = 0.25, len(table) - 1

    def evaluate(step: Tensor) -> tuple[float, float]:
        return table[round(-math.log2(float(step)))]

    found = line_search(evaluate, torch.tensor(1.0), delta=delta, halvings=halvings)
    passing = [j for j, (gain, kl) in enumerate(table) if gain > 0.0 and kl <= delta]
    if passing:
        first = passing[0]
        assert found == (0.5**first, *table[first], first, True)
    else:
        assert found == (0.0, 0.0, 0.0, halvings, False)


@given(
    seed=SEEDS,
    kind=KIND,
    delta=st.sampled_from([1e-4, 1e-2, 1.0, 10.0]),
    halvings=st.integers(0, 3),
    damping=st.sampled_from([1e-3, 0.1, 10.0]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
@settings(max_examples=60, deadline=None)
def test_step_improves_within_the_radius_or_leaves_every_bit(
    seed: int, kind: str, delta: float, halvings: int, damping: float, dtype: torch.dtype
) -> None:
    policy, *data = batch(kind, dtype, seed)
    before, *_ = batch(kind, dtype, seed)
    taken = trpo_step(policy, *data, delta=delta, damping=damping, halvings=halvings)
    if taken.search.accepted:
        gain, kl = _gain_and_kl(before, policy, *data)
        tolerance = 1e-9 if dtype == torch.float64 else 1e-5
        assert kl <= delta + tolerance
        assert gain > -tolerance
        assert taken.search.gain == pytest.approx(gain, abs=tolerance, rel=1e-4)
        expected = parameters(before) + taken.search.fraction * taken.step
        assert torch.equal(parameters(policy), expected)
    else:
        assert taken.search.halvings == halvings
        for old, new in zip(
            before.state_dict().values(), policy.state_dict().values(), strict=True
        ):
            assert torch.equal(old, new)
    assert all(w.grad is None for w in policy.parameters())


def test_zero_advantages_change_nothing_not_even_the_sign_of_zero() -> None:
    policy, obs, actions, adv = batch("tabular")
    with torch.no_grad():
        next(policy.parameters()).fill_(-0.0)
    taken = trpo_step(policy, obs, actions, 0.0 * adv)
    assert not taken.search.accepted
    assert taken.predicted_gain == 0.0
    assert parameters(policy).signbit().all()


def test_step_that_overflows_the_logits_is_refused() -> None:
    policy, *data = batch("tanh network")
    g, evaluate = local_surrogate(policy, *data)
    assert all(map(math.isnan, evaluate(math.inf * g.sign())))
    found = line_search(evaluate, math.inf * g.sign())
    assert (found.fraction, found.accepted) == (0.0, False)


@pytest.mark.parametrize("damping", [0.0, 0.1])
def test_tabular_softmax_whose_fisher_is_singular(damping: float) -> None:
    policy, obs, actions, adv = batch("tabular")
    F = fisher_matrix(policy, obs)
    taken = trpo_step(policy, obs, actions, adv, damping=damping, cg_iterations=50)
    damped = F + damping * torch.eye(len(F), dtype=F.dtype)
    solution = torch.linalg.pinv(damped, rtol=1e-10, hermitian=True) @ taken.g
    torch.testing.assert_close(taken.direction, solution, rtol=1e-7, atol=1e-9)
    assert taken.search.accepted


def test_untouched_parameters_stay() -> None:
    policy, *data = batch("with a critic")
    assert isinstance(policy.value, nn.Linear)
    value = policy.value.weight.clone()
    assert trpo_step(policy, *data).search.accepted
    assert torch.equal(policy.value.weight, value)


@pytest.mark.parametrize(("damping", "tolerance"), [(0.1, 1e-5), (0.0, 2e-2)])
def test_step_in_float32_has_quadratic_kl_delta(damping: float, tolerance: float) -> None:
    """By way of g . d; without damping the condition number magnifies the rounding."""
    policy, *data = batch("tanh network", torch.float32)
    product = fisher_vector_product(policy, data[0], damping)
    step = trpo_step(batch("tanh network", torch.float32)[0], *data, damping=damping).step
    assert float(step @ product(step)) / 2.0 == pytest.approx(0.01, rel=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_step_is_that_of_the_plain_version(dtype: torch.dtype) -> None:
    policy, *data = batch("tanh network", dtype)
    other, *_ = batch("tanh network", dtype)
    taken, step = trpo_step(policy, *data), plain_trpo_step(other, *data)
    torch.testing.assert_close(taken.step, step, rtol=1e-3, atol=1e-6)
    torch.testing.assert_close(parameters(policy), parameters(other), rtol=1e-4, atol=1e-6)


def test_fisher_products_on_a_part_of_the_batch() -> None:
    policy, obs, actions, adv = batch("tanh network")
    g, _ = local_surrogate(policy, obs, actions, adv)
    d = conjugate_gradient(fisher_vector_product(policy, obs[::3], 0.1), g)
    taken = trpo_step(policy, obs, actions, adv, fisher_every=3)
    torch.testing.assert_close(taken.direction, d)
    torch.testing.assert_close(taken.g, g)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": 0.0}, "delta must be finite and above 0; got 0.0"),
        ({"delta": math.nan}, "delta must be finite and above 0; got nan"),
        ({"damping": -1.0}, "damping must be finite and at least 0; got -1.0"),
        ({"damping": math.inf}, "damping must be finite and at least 0; got inf"),
        ({"cg_iterations": 0}, "^cg_iterations must be a whole number of at least 1; got 0"),
        ({"halvings": -1}, "halvings must be a whole number of at least 0; got -1"),
        ({"fisher_every": 0}, "fisher_every must be a whole number of at least 1; got 0"),
        ({"obs": torch.zeros(0, 4)}, "at least one observation"),
        ({"actions": torch.zeros(3, dtype=torch.int64)}, r"actions has shape \(3,\)"),
        ({"adv": torch.zeros(12, 1)}, r"adv \(12, 1\); both must have shape \(12,\)"),
        ({"actions": torch.full((12,), 3)}, "actions must be whole numbers from 0 to 2"),
        ({"actions": torch.zeros(12)}, "actions must be whole numbers from 0 to 2"),
        ({"adv": torch.full((12,), math.nan)}, r"adv must be finite; adv\[0\] is nan"),
    ],
)
def test_errors_say_what_is_wrong_and_nothing_moves(change: dict[str, Any], message: str) -> None:
    policy, obs, actions, adv = batch("tanh network")
    before = parameters(policy)
    arguments = {"obs": obs, "actions": actions, "adv": adv} | change
    with pytest.raises(ValueError, match=message):
        trpo_step(policy, **arguments)
    assert torch.equal(parameters(policy), before)


def test_action_that_the_old_policy_cannot_have_taken() -> None:
    policy, obs, actions, adv = batch("masked actions")
    impossible = policy(obs).isneginf().any(-1)
    assert impossible.any()
    first = int(impossible.nonzero()[0])
    message = rf"actions\[{first}\] = 2 has probability 0 under policy"
    with pytest.raises(ValueError, match=message):
        trpo_step(policy, obs, torch.where(impossible, 2, actions), adv)


def test_a_policy_that_holds_one_layer_twice_is_left_as_it_is_and_can_be_improved() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(3, 3).double()
    policy = nn.Sequential(layer, nn.Tanh(), layer)
    obs, actions = torch.randn(50, 3).double(), torch.randint(3, (50,))
    adv = torch.randn(50).double()
    before = layer.weight.detach().clone()
    fisher_matrix(policy, obs)
    local_surrogate(policy, obs, actions, adv).evaluate(torch.full((12,), 0.1).double())
    assert torch.equal(layer.weight, before)
    assert isinstance(layer.weight, nn.Parameter)
    assert trpo_step(policy, obs, actions, adv).search.accepted


@pytest.mark.parametrize("seed", range(20))
def test_a_tabular_policy_needs_no_damping(seed: int) -> None:
    torch.manual_seed(seed)
    policy = nn.Embedding(2, 2)
    states, actions = torch.randint(2, (300,)), torch.randint(2, (300,))
    taken = trpo_step(policy, states, actions, torch.randn(300), damping=0.0)
    assert taken.search.accepted
    assert taken.search.kl <= 0.01


class _Interrupted(nn.Linear):
    """A layer whose forward pass a reader stops."""

    stop = False

    def forward(self, input: Tensor) -> Tensor:
        if self.stop:
            raise KeyboardInterrupt
        return super().forward(input)


def test_an_interrupt_while_a_step_is_tried_leaves_the_policy_as_it_is() -> None:
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), _Interrupted(5, 3)).double()
    _, *data = batch("tanh network")
    before = [(w, w.data_ptr(), w.detach().clone()) for w in policy.parameters()]
    g, evaluate = local_surrogate(policy, *data)
    policy[2].stop = True
    with pytest.raises(KeyboardInterrupt):
        evaluate(g)
    for w, (same, address, value) in zip(policy.parameters(), before, strict=True):
        assert w is same
        assert w.data_ptr() == address
        assert torch.equal(w, value)


def test_a_step_is_tried_with_the_buffers_of_the_batch_and_writes_to_none() -> None:
    """In training mode a forward pass of batch normalization moves its running mean."""
    torch.manual_seed(0)
    policy = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3)).double()
    policy[0].bias.requires_grad_(False)
    _, *data = batch("tanh network")
    g, evaluate = local_surrogate(policy, *data)
    before = {name: value.clone() for name, value in policy.state_dict().items()}
    measured = evaluate(g)
    for name, value in policy.state_dict().items():
        assert torch.equal(value, before[name]), name
    policy[0].bias.fill_(100.0)
    assert evaluate(g) == measured
    assert policy[0].bias.eq(100.0).all()


def test_a_weight_that_two_layers_share_is_moved_in_both() -> None:
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3)).double()
    policy[2].weight = policy[0].weight
    obs, actions = torch.randn(50, 3).double(), torch.randint(3, (50,))
    adv = torch.randn(50).double()
    before, after = deepcopy(policy), deepcopy(policy)
    g, evaluate = local_surrogate(policy, obs, actions, adv)
    assert len(g) == 9 + 3 + 3
    nn.utils.vector_to_parameters(parameters(policy) + 0.1 * g, after.parameters())
    measured = _gain_and_kl(before, after, obs, actions, adv)
    assert evaluate(0.1 * g) == pytest.approx(measured, rel=1e-9)

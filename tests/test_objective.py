"""PPO's objectives: theory, finite differences, autograd, and agreement of the array libraries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from companion import objective
from companion.value_loss import clipped_value_derivative, clipped_value_loss
from tests.derivatives import array, autograd, slope

ratios = st.floats(0.0, 5.0)
advs = st.floats(-10.0, 10.0)
ranges = st.floats(0.01, 1.5)


# ------------------------------------------------------------------------------------- the ratio


def test_ratio_of_probabilities() -> None:
    r = objective.ratio(np.log(array(0.6, 0.1)), np.log(array(0.5, 0.4)))
    np.testing.assert_allclose(r, [1.2, 0.25], rtol=1e-15)
    assert objective.ratio(array(-math.inf), array(-1.0))[0] == 0


@pytest.mark.parametrize(
    ("logp", "logp_old", "message"),
    [
        ([-1.0, -1.0], [-1.0, -math.inf], r"logp_old must be finite .*; logp_old\[1\] is -inf"),
        ([-1.0], [math.nan], "logp_old must be finite"),
        ([math.nan], [-1.0], "logp must be below"),
        ([math.inf], [-1.0], "logp must be below"),
        ([], [], "logp must hold at least one sample"),
        ([-1.0], [-1.0, -1.0], r"logp_old must have logp's shape \(1,\); got \(2,\)"),
    ],
)
@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_ratio_of_bad_input(make: Any, logp: Any, logp_old: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        objective.ratio(make(logp), make(logp_old))


# ------------------------------------------------------------------------- the clipped objective


@given(r=ratios, adv=advs, low=ranges, high=ranges)
def test_clipped_is_never_above_unclipped(r: float, adv: float, low: float, high: float) -> None:
    clipped = objective.clipped_objective(array(r), array(adv), low, high)[0]
    assert clipped <= r * adv
    if 1 - low <= r <= 1 + high:
        assert clipped == r * adv


@given(adv=advs, low=ranges, high=ranges)
def test_first_order_agreement_at_ratio_one(adv: float, low: float, high: float) -> None:
    one, adv_array = array(1.0), array(adv)
    assert objective.clipped_objective(one, adv_array, low, high)[0] == adv
    assert objective.clipped_derivative(one, adv_array, low, high)[0] == adv


# CLIP-3: (advantage, ratio region) -> is there a gradient? eps_low 0.2, eps_high 0.3.
REGIONS = {
    "A > 0, below the band": (2.0, (0.0, 0.8), True),
    "A > 0, in the band": (2.0, (0.8, 1.3), True),
    "A > 0, above the band": (2.0, (1.3, 5.0), False),
    "A < 0, below the band": (-2.0, (0.0, 0.8), False),
    "A < 0, in the band": (-2.0, (0.8, 1.3), True),
    "A < 0, above the band": (-2.0, (1.3, 5.0), True),
}


@pytest.mark.parametrize(("adv", "region", "live"), REGIONS.values(), ids=list(REGIONS))
@given(share=st.floats(0.01, 0.99))
def test_derivative_by_region(
    adv: float, region: tuple[float, float], live: bool, share: float
) -> None:
    r = region[0] + share * (region[1] - region[0])
    derivative = objective.clipped_derivative(array(r), adv, 0.2, 0.3)[0]
    assert derivative == (adv if live else 0)
    difference = slope(lambda x: objective.clipped_objective(x, adv, 0.2, 0.3), r)
    assert difference == pytest.approx(derivative, abs=1e-8)


@pytest.mark.parametrize("width", [0.1, 0.2, 0.28])
def test_derivative_at_the_kink_is_the_one_from_inside(width: float) -> None:
    kinks, adv = np.array(objective.band(width)), array(-1.5, 1.5)
    assert objective.clipped_derivative(kinks, adv, width).tolist() == [-1.5, 1.5]
    clipped = autograd(lambda r: objective.clipped_objective(r, torch.tensor(adv), width), kinks)
    assert clipped.tolist() == [-1.5, 1.5]


@given(pairs=st.lists(st.tuples(ratios, advs), min_size=1, max_size=20), low=ranges, high=ranges)
def test_torch_value_and_autograd_equal_numpy(
    pairs: list[tuple[float, float]], low: float, high: float
) -> None:
    r, adv = np.array(pairs).T
    # Where r A and its clipped value round to one number, autograd halves the gradient.
    edges = np.array(objective.band(low, high))
    assume((np.abs(r[:, None] - edges) > 1e-12).all() and (np.abs(adv[adv != 0]) > 1e-300).all())

    def clipped(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = objective.clipped_objective(x, torch.tensor(adv), low, high)
        return result

    expected = objective.clipped_objective(r, adv, low, high)
    np.testing.assert_array_equal(clipped(torch.tensor(r)).numpy(), expected)
    derivative = objective.clipped_derivative(r, adv, low, high)
    np.testing.assert_array_equal(autograd(clipped, r), derivative)
    same = objective.clipped_derivative(torch.tensor(r), torch.tensor(adv), low, high)
    np.testing.assert_array_equal(same.numpy(), derivative)


def test_clip_higher() -> None:
    """CLIP-4: with eps 0.2, probability 0.01 may rise to 0.012 and 0.60 to 0.72."""
    old = array(0.01, 0.60)
    _, symmetric = objective.band(0.2)
    _, higher = objective.band(0.2, 0.28)
    np.testing.assert_allclose(old * symmetric, [0.012, 0.72], rtol=1e-12)
    np.testing.assert_allclose(old * higher, [0.0128, 0.768], rtol=1e-12)
    assert objective.clipped_objective(array(1.25), 1.0)[0] == 1.2
    assert objective.clipped_objective(array(1.25), 1.0, 0.2, 0.28)[0] == 1.25


@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_dtype_and_shape_are_kept(make: Any) -> None:
    for dtype in ("float32", "float64"):
        r = make([[0.5, 1.0, 2.0]], dtype=getattr(torch if make is torch.tensor else np, dtype))
        for result in (
            objective.clipped_objective(r, 1.0),
            objective.clipped_objective(r, r),
            objective.clipped_derivative(r, 1.0),
            objective.penalized_objective(r, r, 0.1, 3.0),
            clipped_value_loss(r, 0.0, 1.0),
            clipped_value_derivative(r, 0.0, 1.0),
            objective.ratio(r, r),
        ):
            assert result.dtype == r.dtype
            assert result.shape == r.shape


def test_under_torch_func() -> None:
    """Values are unknown inside vmap: the checks step aside and the formula stays."""
    r, adv = torch.tensor([0.5, 1.1, 1.9]), torch.tensor([1.0, -1.0, 2.0])
    gradient = torch.func.vmap(torch.func.grad(objective.clipped_objective))(r, adv)
    assert torch.equal(gradient, objective.clipped_derivative(r, adv))


BAD_SAMPLES = [
    ({"clip_range": 0.0}, "clip_range must be finite and above 0; got 0.0"),
    ({"clip_range": -0.1}, "clip_range must be"),
    ({"clip_range": math.nan}, "clip_range must be"),
    ({"clip_range": math.inf}, "clip_range must be"),
    ({"clip_range_high": 0.0}, "clip_range_high must be"),
    ({"clip_range_high": math.nan}, "clip_range_high must be"),
    ({"ratio": array(-0.1, 1.0)}, r"ratio must be finite and at least 0; ratio\[0\] is -0.1"),
    ({"ratio": array(1.0, math.nan)}, r"ratio must be .*; ratio\[1\] is nan"),
    ({"ratio": np.array([[1.0, 1.0], [math.inf, 1.0]]), "adv": 1.0}, r"ratio\[1, 0\] is inf"),
    ({"ratio": array()}, "ratio must hold at least one sample"),
    ({"adv": array(1.0, math.nan)}, "adv must be finite"),
    ({"adv": math.inf}, "adv must be finite; adv is inf"),
    ({"adv": np.ones((2, 1))}, r"adv must have ratio's shape \(2,\); got \(2, 1\)"),
]


@pytest.mark.parametrize(("change", "message"), BAD_SAMPLES)
def test_bad_samples(change: dict[str, Any], message: str) -> None:
    arguments = {"ratio": array(1.0, 1.1), "adv": array(1.0, -1.0)} | change
    for f in (objective.clipped_objective, objective.clipped_derivative):
        with pytest.raises(ValueError, match=message):
            f(**arguments)
    if "adv" not in change:
        del arguments["adv"]
        with pytest.raises(ValueError, match=message):
            objective.fraction_outside(**arguments)


# ------------------------------------------------------------------------ the fraction outside


def test_fraction_outside_leaves_the_edges_in() -> None:
    r = array(0.79, 0.8, 1.0, 1.2, 1.21, 1.35)
    assert objective.fraction_outside(r) == 3 / 6
    assert objective.fraction_outside(r, 0.2, 0.3) == 2 / 6
    assert objective.fraction_outside(torch.tensor(r).reshape(2, 3), 0.215) == 1 / 6


# --------------------------------------------------------------------------- the KL penalty


@given(r=ratios, adv=advs, kl=st.floats(0, 5), beta=st.floats(0, 100))
def test_penalty(r: float, adv: float, kl: float, beta: float) -> None:
    penalized = objective.penalized_objective(array(r), array(adv), array(kl), beta)[0]
    assert penalized == pytest.approx(r * adv - beta * kl, rel=1e-12, abs=1e-12)
    unpenalized = objective.penalized_objective(array(r), array(adv), array(kl), 0.0)[0]
    assert penalized <= unpenalized == r * adv


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beta": -1.0}, "beta must be finite and at least 0; got -1.0"),
        ({"beta": math.nan}, "beta must be"),
        ({"kl": array(math.nan)}, "kl must be finite"),
        ({"kl": array(math.inf)}, "kl must be finite"),
        ({"kl": array(-0.1)}, r"kl must be finite and at least 0 .*log-ratio\); kl\[0\] is -0.1"),
        ({"kl": -1e-9}, r"kl must be finite and at least 0 .*; kl is -1e-09"),
        ({"kl": array(0.1, 0.1)}, "kl must have ratio's shape"),
        ({"ratio": array(-1.0)}, "ratio must be"),
    ],
)
def test_bad_penalty(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"ratio": array(1.0), "adv": 1.0, "kl": array(0.1), "beta": 1.0}
    with pytest.raises(ValueError, match=message):
        objective.penalized_objective(**arguments | change)


def test_a_divergence_that_rounding_made_negative_is_penalized_as_it_is() -> None:
    r, kl = torch.ones(1), torch.tensor([-1e-6])
    assert float(objective.penalized_objective(r, 2.0, kl, 1.0)) == pytest.approx(2.000001)


@pytest.mark.parametrize(
    ("kl", "factor"),
    [
        (1.0, 2.0),
        (0.031, 2.0),
        (0.030, 1.0),  # 1.5 times the target is not above it
        (0.02, 1.0),
        (0.014, 1.0),
        (0.013, 0.5),
        (0.0, 0.5),
        (-0.001, 0.5),  # a sampled KL may be
    ],
)
def test_adapt_beta(kl: float, factor: float) -> None:
    assert objective.adapt_beta(3.0, kl, target_kl=0.02) == 3.0 * factor


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0, 0.0])
def test_adapt_beta_of_bad_input(bad: float) -> None:
    with pytest.raises(ValueError, match="beta must be"):
        objective.adapt_beta(bad, 0.01, 0.01)
    with pytest.raises(ValueError, match="target_kl must be"):
        objective.adapt_beta(1.0, 0.01, bad)
    if not math.isfinite(bad):
        with pytest.raises(ValueError, match="kl must be"):
            objective.adapt_beta(1.0, bad, 0.01)


@pytest.mark.parametrize("whole", [np.array([0, 1, 2]), torch.tensor([0, 1, 2])])
def test_whole_numbers_are_refused_rather_than_clipped_to_whole_numbers(whole: Any) -> None:
    with pytest.raises(ValueError, match="ratio must be floating-point"):
        objective.clipped_objective(whole, 1.0)

"""The bandit clip experiment: the printed table, limits known exactly, no hidden state."""

from __future__ import annotations

import json
import math
from importlib import resources
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from companion.bandit import BanditSettings, EpochRecord, printed_columns, run
from companion.sampling import portable_categorical

PRINTED_NAME = {"none": "no clipping", "clip": "clipped", "kl": "KL penalty"}


@pytest.fixture(scope="module")
def records() -> dict[str, tuple[EpochRecord, ...]]:
    return {method: run(BanditSettings(method=method)) for method in ("none", "clip", "kl")}


def test_every_printed_figure(records: dict[str, tuple[EpochRecord, ...]]) -> None:
    text = resources.files("companion").joinpath("printed.json").read_text(encoding="utf-8")
    chapter = json.loads(text)["bandit"]
    columns = {
        PRINTED_NAME[method]: printed_columns(rows, chapter["epochs"])
        for method, rows in records.items()
    }
    assert columns == chapter["methods"]


def test_records_count_epochs_and_name_the_penalty(
    records: dict[str, tuple[EpochRecord, ...]],
) -> None:
    for method, rows in records.items():
        assert [row.epoch for row in rows] == list(range(1, 11))
        assert {row.beta for row in rows} == {3.0 if method == "kl" else 0.0}


# ---------------------------------------------------------------------------- limits known exactly


def same_training(left: tuple[EpochRecord, ...], right: tuple[EpochRecord, ...]) -> bool:
    return all(
        (a.kl, a.largest_ratio, a.improvement) == (b.kl, b.largest_ratio, b.improvement)
        for a, b in zip(left, right, strict=True)
    )


def test_an_endless_band_is_no_clipping(records: dict[str, tuple[EpochRecord, ...]]) -> None:
    wide = run(BanditSettings(method="clip", clip_range=1e6))
    assert same_training(wide, records["none"])
    assert {row.outside for row in wide} == {0.0}


def test_penalty_zero_is_no_penalty(records: dict[str, tuple[EpochRecord, ...]]) -> None:
    assert same_training(run(BanditSettings(method="kl", beta=0.0)), records["none"])


def test_one_full_batch_step_does_not_see_the_clip() -> None:
    """PPO-1: at the old policy every ratio is 1, and the penalty's gradient is zero."""
    one = {"epochs": 1, "minibatch": 2048}
    none, clip = (run(BanditSettings(method=method, **one)) for method in ("none", "clip"))
    assert same_training(none, clip)
    penalized = run(BanditSettings(method="kl", beta=100.0, **one))[0]
    assert penalized.kl == pytest.approx(none[0].kl, rel=1e-3)


def test_adaptive_penalty_with_an_unreachable_target_never_rises() -> None:
    rows = run(BanditSettings(method="adaptive kl", target_kl=1e3, beta=8.0, epochs=4))
    assert [row.beta for row in rows] == [8.0, 4.0, 2.0, 1.0]


def test_adaptive_penalty_follows_the_measured_kl() -> None:
    rows = run(BanditSettings(method="adaptive kl", target_kl=0.02))
    for before, after in pairwise(rows):
        expected = 2.0 if before.kl > 0.03 else 0.5 if before.kl < 0.02 / 1.5 else 1.0
        assert after.beta == before.beta * expected
    assert {after.beta / before.beta for before, after in pairwise(rows)} == {0.5, 1.0, 2.0}


# ------------------------------------------------------------- the same protocol, written otherwise


def independent_run(seed: int, epochs: int, low: float, high: float) -> list[tuple[float, ...]]:
    """Asymmetric clipping by leaving dead samples out, ratios and KL from torch.distributions."""
    torch.manual_seed(seed)
    w = torch.tensor(np.random.default_rng(seed).normal(size=(8, 4)) / 8**0.5).float()
    x, x_test = torch.randn(2048, 8), torch.randn(20000, 8)

    def fresh() -> nn.Module:
        torch.manual_seed(seed + 1)
        return nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 4))

    def dist(net: nn.Module, contexts: torch.Tensor) -> torch.distributions.Categorical:
        return torch.distributions.Categorical(logits=net(contexts))

    old = fresh()
    p_old = dist(old, x).probs.detach()
    action = portable_categorical(p_old, generator=torch.default_generator)
    reward = (x @ w)[torch.arange(2048), action] + torch.randn(2048)
    adv = reward - (p_old * (x @ w)).sum(1)
    adv = (adv - adv.mean()) / adv.std(correction=1)
    net = fresh()
    rows: list[tuple[float, ...]] = []
    adam = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(epochs):
        for i in torch.randperm(2048).reshape(8, 256):
            r = dist(net, x[i]).probs[torch.arange(256), action[i]] / p_old[i, action[i]]
            a = adv[i]
            live = torch.where(a > 0, r < 1 + high, r > 1 - low)
            loss = -(r * a)[live].sum() / 256
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
        with torch.no_grad():
            r = dist(net, x).probs[torch.arange(2048), action] / p_old[torch.arange(2048), action]
            kl = torch.distributions.kl_divergence(dist(old, x), dist(net, x)).mean()
            gain = ((dist(net, x_test).probs - dist(old, x_test).probs) * (x_test @ w)).sum(1)
            outside = 1 - ((r >= 1 - low) & (r <= 1 + high)).float().mean()
            rows.append((float(kl), float(outside), float(r.max()), float(gain.mean())))
    return rows


def test_another_seed_against_an_independent_run() -> None:
    settings = BanditSettings(method="clip", clip_range=0.1, clip_range_high=0.3, seed=7, epochs=2)
    with torch.random.fork_rng(devices=[]):
        expected = independent_run(7, 2, 0.1, 0.3)
    measured = [(row.kl, row.outside, row.largest_ratio, row.improvement) for row in run(settings)]
    np.testing.assert_allclose(measured, expected, rtol=2e-3)


# ------------------------------------------------------------------------------ no hidden state


def test_global_generator_is_left_as_found_and_has_no_say() -> None:
    settings = BanditSettings(epochs=1)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first = run(settings)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(4)
    torch.randn(5)
    assert run(settings) == first


def test_default_dtype_and_gradient_mode_have_no_say() -> None:
    settings = BanditSettings(epochs=1)
    first = run(settings)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            assert run(settings) == first
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "ppo"}, "method must be one of .*'adaptive kl'.*; got 'ppo'"),
        ({"clip_range": 0.0}, "clip_range must be finite and above 0; got 0.0"),
        ({"clip_range_high": math.nan}, "clip_range_high must be finite"),
        ({"beta": -1.0}, "beta must be finite and at least 0"),
        ({"method": "adaptive kl", "beta": 0.0}, "beta must be finite and above 0"),
        ({"target_kl": 0.0}, "target_kl must be finite and above 0"),
        ({"lr": 0.0}, "lr must be finite and above 0"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1"),
        ({"minibatch": 0}, "minibatch must be a whole number of at least 1"),
        ({"epochs": 1.5}, "epochs must be a whole number"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
    ],
)
def test_bad_settings(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BanditSettings(**change)

"""The compiled experiments do what the readable ones do, and compile once."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from companion import bandit, mirror, mirror_example
from companion.bandit import BanditSettings, EpochRecord, printed_columns
from companion.compiled import bandit as compiled_bandit
from companion.compiled import mirror as compiled_mirror
from companion.compiled.mirror import _factorize, _solve, _solve_transposed
from companion.compiled.network import Network, adam, backward, forward, network_of
from companion.mdp import TabularMDP, random_mdp
from companion.mirror import Direction, natural_gradient, policy_gradient
from companion.show import matching, printed

ROOT = Path(__file__).resolve().parent.parent
CHAPTER = random_mdp(rng=np.random.default_rng(0))
ONE_SAMPLE = 1 / bandit.SAMPLES


# ------------------------------------------------------------------------------- mirror descent


def test_every_printed_gap() -> None:
    gaps = compiled_mirror.comparison(CHAPTER)
    chapter = printed("mirror")
    ours = [mirror_example.gap_as_printed(gap[k]) for gap in gaps.values() for k in chapter["k"]]
    theirs = [entry for row in chapter["rows"] for entry in row["gap"]]
    assert list(gaps) == [(row["method"], row["start"]) for row in chapter["rows"]]
    assert matching(ours, theirs) == "60 of 60"


@pytest.mark.parametrize("eta", [0.01, 0.1, 1.0, 10.0, 100.0])
def test_a_move_of_eta_is_the_readable_one(eta: float) -> None:
    fast = compiled_mirror.comparison(CHAPTER, (eta,), (eta,))
    readable = mirror_example.comparison(CHAPTER, (eta,), (eta,))
    assert list(fast) == list(readable)
    for name, gap in readable.items():
        np.testing.assert_allclose(fast[name], gap, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("direction", [policy_gradient, natural_gradient])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9, 0.99])
def test_a_run_is_the_readable_one(direction: Direction, gamma: float) -> None:
    """On other sizes, side by side, with growing steps; gaps are differences of numbers like J*."""
    rng = np.random.default_rng(0)
    mdp = random_mdp(7, 3, gamma, rng=rng)
    start, eta = rng.normal(size=(2, 1, 7, 3)), np.array([0.1, 1.0, 5.0])
    fast, readable = (
        run(mdp, direction, start, eta, 60, growth=1.1) for run in (compiled_mirror.run, mirror.run)
    )
    floor = 1e-12 * mirror.optimal_return(mdp) / (1 - gamma)
    assert fast.gap.shape == (61, 2, 3)
    np.testing.assert_allclose(fast.gap, readable.gap, rtol=1e-9, atol=floor)
    size = np.abs(readable.logits).max()
    np.testing.assert_allclose(fast.logits, readable.logits, rtol=1e-9, atol=1e-11 * size)


def test_the_start_is_left_as_it_was() -> None:
    start = np.zeros(CHAPTER.shape)
    compiled_mirror.run(CHAPTER, natural_gradient, start, 1.0, 3)
    assert not start.any()


@pytest.mark.parametrize("gamma", [0.9, 0.999999])
def test_elimination_without_pivoting_is_stable(gamma: float) -> None:
    rng = np.random.default_rng(1)
    matrix = np.eye(50) - gamma * rng.dirichlet(np.full(50, 0.05), size=50)
    right = rng.normal(size=50)
    factors, x, y = matrix.copy(), right.copy(), right.copy()
    _factorize(factors)
    _solve(factors, x)
    _solve_transposed(factors, y)
    for solution, of in ((x, matrix), (y, matrix.T)):
        size = np.abs(of) @ np.abs(solution) + np.abs(right)
        assert (np.abs(of @ solution - right) / size).max() < 50 * np.finfo(float).eps


BAD_RUNS: list[dict[str, Any]] = [
    {"start": np.zeros((4, 20))},
    {"start": np.full(CHAPTER.shape, np.nan)},
    {"eta": 0.0},
    {"eta": np.inf},
    {"eta": [1.0, -1.0]},
    {"start": np.zeros((2, *CHAPTER.shape)), "eta": [1.0, 2.0, 3.0]},
    {"growth": 0.0},
    {"iterations": 0},
    {"iterations": 1.5},
    {"eta": 1e308, "iterations": 1},  # the logits overflow
]


@pytest.mark.parametrize("change", BAD_RUNS)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_bad_runs_raise_the_readable_error(change: dict[str, Any]) -> None:
    arguments = {"start": np.zeros(CHAPTER.shape), "eta": 1.0, "iterations": 2} | change
    messages = []
    for run in (mirror.run, compiled_mirror.run):
        with pytest.raises(ValueError, match=" ") as error:
            run(CHAPTER, natural_gradient, **arguments)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_a_direction_that_is_not_compiled() -> None:
    def uphill(mdp: TabularMDP, pi: Any, values: Any) -> Any:
        return values.adv

    with pytest.raises(ValueError, match="direction must be policy_gradient or natural_gradient"):
        compiled_mirror.run(CHAPTER, uphill, np.zeros(CHAPTER.shape), 1.0, 1)


# --------------------------------------------------------------------------------------- bandit


def test_every_printed_figure_of_the_bandit() -> None:
    chapter = printed("bandit")
    names = {"none": "no clipping", "clip": "clipped", "kl": "KL penalty"}
    ours = {
        name: printed_columns(compiled_bandit.run(BanditSettings(method=method)), chapter["epochs"])
        for method, name in names.items()
    }
    assert ours == chapter["methods"]
    assert sum(len(c) for columns in ours.values() for c in columns.values()) == 60


def assert_same_records(
    fast: tuple[EpochRecord, ...], readable: tuple[EpochRecord, ...], tolerance: float = 1e-5
) -> None:
    for field in fields(EpochRecord):
        ours, theirs = ([getattr(row, field.name) for row in rows] for rows in (fast, readable))
        # A ratio may lie within rounding of the band's edge: one sample may count or not.
        slack = 1.01 * ONE_SAMPLE if field.name == "outside" else tolerance
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=slack, err_msg=field.name)


RUNS: list[dict[str, Any]] = [
    {"method": "none", "seed": 1},
    {"method": "none", "seed": 2, "lr": 0.03, "epochs": 20},
    {"method": "clip", "seed": 3},
    {"method": "clip", "seed": 4, "clip_range": 0.05},
    {"method": "clip", "seed": 5, "clip_range": 0.1, "clip_range_high": 0.3},
    {"method": "clip", "clip_range": 0.5, "epochs": 20},
    {"method": "clip", "lr": 3e-4, "minibatch": 2048},
    {"method": "kl", "seed": 6, "beta": 0.3},
    {"method": "kl", "seed": 7, "beta": 30.0, "lr": 0.03},
    {"method": "kl", "minibatch": 100, "clip_range": 0.1},
    {"method": "adaptive kl", "seed": 8, "epochs": 20},
    {"method": "adaptive kl", "seed": 9, "target_kl": 0.01},
    {"method": "adaptive kl", "minibatch": 5000, "lr": 0.01, "clip_range_high": 0.4},
]


@pytest.mark.parametrize("setting", RUNS, ids=str)
def test_records_are_the_readable_ones(setting: dict[str, Any]) -> None:
    settings = BanditSettings(**setting)
    assert_same_records(compiled_bandit.run(settings), bandit.run(settings))


@pytest.mark.parametrize("seed", range(4))
def test_long_clipped_runs_with_large_steps_stay_close(seed: int) -> None:
    """The clip's slope jumps at the edge: a ratio within rounding of it sends the runs apart.

    torch's own runs part in the same way on another vector unit, by up to 2e-4 at this step size.
    """
    settings = BanditSettings(seed=seed, lr=0.03)
    assert_same_records(compiled_bandit.run(settings), bandit.run(settings), tolerance=5e-3)


def test_the_band_is_only_counted_with_where_nothing_is_clipped() -> None:
    first = BanditSettings(method="none", epochs=2, seed=11, clip_range=0.2)
    compiled_bandit.run(first)
    before = compiled_bandit._training.cache_info().misses
    moved = BanditSettings(method="none", epochs=2, seed=11, clip_range=0.1, clip_range_high=0.3)
    assert_same_records(compiled_bandit.run(moved), bandit.run(moved))
    assert compiled_bandit._training.cache_info().misses == before


@pytest.mark.filterwarnings("ignore:torch.asarray:UserWarning")
def test_a_policy_that_is_lost_raises_the_readable_error() -> None:
    settings = BanditSettings(method="none", lr=1e37, epochs=1)
    for run in (bandit.run, compiled_bandit.run):
        with pytest.raises(ValueError, match=r"logp must be below \+inf; logp\[\d+\] is nan"):
            run(settings)


def test_global_generator_and_default_dtype_are_left_alone_and_have_no_say() -> None:
    first = compiled_bandit.run(BanditSettings(epochs=1, seed=12))
    for cached in (compiled_bandit._training, compiled_bandit._problem, compiled_bandit._draws):
        cached.cache_clear()
    torch.manual_seed(3)
    before = torch.get_rng_state()
    torch.set_default_dtype(torch.float64)
    try:
        assert compiled_bandit.run(BanditSettings(epochs=1, seed=12)) == first
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(torch.get_rng_state(), before)


# -------------------------------------------------------------------------------------- network


def torch_and_compiled(n_features: int = 8) -> tuple[nn.Sequential, np.ndarray, Network]:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(n_features, 64), nn.Tanh(), nn.Linear(64, 4))
    flat = nn.utils.parameters_to_vector(module.parameters()).detach().numpy().copy()
    return module, flat, network_of(flat, n_features, 64, 4)


def test_tanh_is_accurate_everywhere() -> None:
    x = np.concatenate([-np.geomspace(1e-30, 1e30, 20_001), np.linspace(-12, 12, 240_001)])
    x = x.astype(np.float32)[None]
    one, zero = np.ones((1, 1), np.float32), np.zeros(1, np.float32)
    hidden, _ = forward(Network(one, zero, one, zero), x)
    exact = np.tanh(x.astype(np.float64))
    np.testing.assert_allclose(hidden, exact, rtol=5e-7)


def test_forward_and_backward_are_torchs() -> None:
    module, _, weights = torch_and_compiled()
    x = torch.randn(300, 8)
    upstream = torch.randn(300, 4) / 300
    logits = module(x)
    logits.backward(upstream)
    hidden, ours = forward(weights, x.numpy().T.copy())
    np.testing.assert_allclose(ours.T, logits.detach().numpy(), atol=2e-6)
    slopes = network_of(np.empty(836, np.float32), 8, 64, 4)
    backward(weights, x.numpy().T.copy(), hidden, upstream.numpy().T.copy(), slopes)
    for ours, parameter in zip(slopes, module.parameters(), strict=True):
        assert parameter.grad is not None
        np.testing.assert_allclose(ours, parameter.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_adam_is_torchs() -> None:
    rng = np.random.default_rng(0)
    parameter = nn.Parameter(torch.from_numpy(rng.normal(size=50).astype(np.float32)))
    state = np.stack([parameter.detach().numpy().copy(), *np.zeros((3, 50), np.float32)])
    optimizer = torch.optim.Adam([parameter], lr=0.01)
    for step in range(1, 101):
        state[1] = rng.normal(size=50) * 10 ** rng.uniform(-9, 2, size=50)
        parameter.grad = torch.from_numpy(state[1].copy())
        optimizer.step()
        adam(state, step, 0.01)
    np.testing.assert_allclose(state[0], parameter.detach().numpy(), rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------------------------- compilation


def python(code: str) -> str:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=ours,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_only_who_uses_a_kernel_waits_for_numba() -> None:
    assert python("import sys, companion.compiled; print('numba' in sys.modules)") == "False\n"


def test_a_second_process_compiles_nothing_and_nothing_is_written_elsewhere() -> None:
    use = """
import numpy as np
from companion.bandit import BanditSettings
from companion.compiled import bandit, mirror, network
from companion.mdp import two_state_trap
bandit.run(BanditSettings(epochs=1))
mirror.comparison(two_state_trap(), iterations=2)
kernels = [f for m in (bandit, mirror, network) for f in vars(m).values() if hasattr(f, "stats")]
called = [f for f in kernels if f.signatures]
print(len(called), sum(sum(f.stats.cache_misses.values()) for f in called))
print(*{f.stats.cache_path for f in called})
"""
    python(use)
    counts, folder = python(use).splitlines()
    called, misses = map(int, counts.split())
    assert called >= 7
    assert misses == 0
    assert Path(folder) == ROOT / "companion" / "compiled" / "__pycache__"

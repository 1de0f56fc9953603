"""The chapter's eight seeds: every printed line, from 16 runs of which two go at a time."""

from __future__ import annotations

import math

import joblib
import numpy as np
import pytest
import torch

from companion import ablation, ablation_lines
from companion.ablation import AblationRun, AblationSettings
from companion.ablation_records import reference
from companion.show import printed

SHORT = AblationSettings(seed=3, updates=2)


@pytest.fixture(scope="module")
def runs() -> dict[str, list[AblationRun]]:
    # Unclipped runs that live take longest: first, so that the two processes end together.
    wanted = {"no clip": None, "clipped": 0.2}
    jobs = [one for clip in wanted.values() for one in ablation_lines.settings(clip)]
    done = joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(ablation.run)(j) for j in jobs)
    return {"no clip": done[:8], "clipped": done[8:]}


def test_every_printed_line(runs: dict[str, list[AblationRun]]) -> None:
    chapter = dict(printed("ablation")["torch"])
    assert chapter.pop("exact_lines") == "all"
    assert ablation_lines.printed_lines(runs["clipped"], runs["no clip"]) == chapter


def test_the_stored_runs_are_these_bit_for_bit(runs: dict[str, list[AblationRun]]) -> None:
    for name, stored in reference().items():
        for one, other in zip(stored, runs[name], strict=True):
            assert_same(one, other)


def test_kl_and_band_exits_rise_then_stall_within_a_clipped_batch(
    runs: dict[str, list[AblationRun]],
) -> None:
    kl = np.mean([one.kl for one in runs["clipped"]], axis=(0, 1))
    outside = np.mean([one.outside for one in runs["clipped"]], axis=(0, 1))
    for curve in (kl, outside):
        assert curve[0] == 0  # before the first step the policy is the one that collected
        early, late = curve[5] - curve[0], curve[-1] - curve[-6]
        assert early > 4 * abs(late)


def test_a_run_in_another_process_is_the_same_bit_for_bit(
    runs: dict[str, list[AblationRun]],
) -> None:
    dead = min(runs["no clip"], key=lambda one: one.returns.sum())
    assert_same(ablation.run(dead.settings), dead)


def assert_same(one: AblationRun, other: AblationRun) -> None:
    assert one.settings == other.settings
    for name in ("returns", "outside", "kl", "entropy", "parameters"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_global_generators_threads_and_gradient_mode_have_no_say_and_are_left_alone() -> None:
    first = ablation.run(SHORT)
    threads = torch.get_num_threads()
    torch.manual_seed(7)
    np.random.seed(7)  # noqa: NPY002
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    torch.set_num_threads(2)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            assert_same(ablation.run(SHORT), first)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(torch.float32)
    after = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    assert torch.equal(before[0], after[0])
    assert before[1] == after[1]


def test_the_first_row_of_a_batch_is_that_of_the_collecting_policy() -> None:
    done = ablation.run(SHORT)
    assert done.outside.shape == (2, 20)
    assert not done.outside[:, 0].any()
    assert not done.kl[:, 0].any()
    assert done.entropy[0, 0] == pytest.approx(math.log(2), abs=0.02)  # small initial weights


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("seed", -1, "seed must be a whole number of at least 0"),
        ("clip_range", 0.0, "clip_range must be finite and above 0"),
        ("lr", math.nan, "lr must be finite and above 0"),
        ("entropy_coefficient", -0.1, "entropy_coefficient must be finite and at least 0"),
        ("updates", 0, "updates must be a whole number of at least 1"),
        ("episodes", 1.5, "episodes must be a whole number of at least 1"),
        ("band", math.inf, "band must be finite and above 0"),
    ],
)
def test_settings_that_cannot_be(field: str, value: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AblationSettings(**{field: value})


def test_a_lost_run_says_where_and_what_was_healthy_last() -> None:
    pattern = r"lost in update 0 of .*seed=3.*adv must be finite.*last healthy .*entropy: none"
    with pytest.raises(FloatingPointError, match=pattern):
        ablation.run(AblationSettings(seed=3, lr=1e36, epochs=1))

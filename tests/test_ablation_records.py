"""The stored runs: what they say, and that a fresh cell of them says the same."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from companion import ablation_records, ppo_details, training
from companion.ablation import AblationSettings
from companion.ablation_records import Records, recorded, reference, summarized, wanted
from companion.compiled.ppo import run_all
from companion.drawing import Choice
from companion.figures.ablation import RUNS, draw_runs
from companion.more_seeds import AT_ONCE, MoreSeeds

FEW = 16  # seeds of a fresh cell


@pytest.mark.parametrize(("clip_range", "epochs"), [(None, 20), (0.2, 5)])
def test_fresh_agents_behave_as_the_stored_ones(clip_range: float | None, epochs: int) -> None:
    """Other seeds: within the 99.9 % interval of a difference of two means, or proportions."""
    seeds = range(500, 500 + FEW)
    jobs = [AblationSettings(seed, clip_range, epochs=epochs) for seed in seeds]
    fresh, stored = summarized(run_all(jobs)), recorded(clip_range, epochs)
    for name in ("outside", "entropy_first", "entropy_last", "final"):
        a, b = (np.asarray(getattr(some, name), float) for some in (fresh, stored))
        error = math.hypot(a.std(ddof=1) / math.sqrt(len(a)), b.std(ddof=1) / math.sqrt(len(b)))
        assert abs(a.mean() - b.mean()) <= 3.5 * error + 1e-3, name
    n = len(stored.dead)
    p = (fresh.dead.sum() + stored.dead.sum()) / (FEW + n)
    spread = math.sqrt(p * (1 - p) * (1 / FEW + 1 / n))
    assert abs(fresh.dead.mean() - stored.dead.mean()) <= 3.3 * spread


def test_a_summary_of_the_reference_counts_its_dead() -> None:
    """Seeds 0, 2, 4, 5 and 6, as the chapter prints."""
    made = summarized(reference()["no clip"])
    assert np.flatnonzero(made.dead).tolist() == [0, 2, 4, 5, 6]
    assert f"{made.outside.mean():.1%}" == "16.7%"
    assert f"{made.outside_last.mean():.1%}" == "23.9%"


def test_every_wanted_setting_is_stored_with_its_seeds() -> None:
    for one, seeds in wanted().items():
        found = recorded(one.clip_range, one.epochs, one.lr, one.entropy_coefficient)
        assert found.returns.shape == (seeds, 60)
        assert all(len(column) == seeds for column in found)
        assert np.isfinite(np.concatenate([np.ravel(column) for column in found])).all()
        assert found.returns.min() >= 8  # no episode of CartPole is shorter
        assert found.returns.max() <= 500


def test_every_stop_of_the_sliders_is_stored() -> None:
    grids: list[list[Any]] = [
        list(control.options) if isinstance(control, Choice) else control.grid()
        for control in RUNS.controls.values()
    ]
    for clip_range, epochs, lr, bonus in itertools.product(*grids):
        for clip in (float(clip_range), None):
            assert len(recorded(clip, int(epochs), float(lr), float(bonus)).dead) >= 8


def test_between_two_stops_agents_are_trained() -> None:
    drawing = draw_runs(0.3, "1", 1e-2, 1e-2)
    # With one step on a batch the clip never acts, so the stored agents of 0.2 are these.
    stored = draw_runs(0.2, "1", 1e-2, 1e-2)
    assert drawing.numbers.keys() == stored.numbers.keys()
    assert drawing.numbers["clipped: dead"] == stored.numbers["clipped: dead"]
    assert "clip range 0.3" in drawing.alt


def test_a_clip_as_wide_as_can_be_is_none() -> None:
    assert_same(recorded(1e6), Records(*(column[:48] for column in recorded(None))))


def assert_same(one: Records, other: Records) -> None:
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_setting_that_is_not_stored_is_named() -> None:
    with pytest.raises(ValueError, match=r"no runs are stored with .*clip_range=0.3"):
        recorded(0.3)


def test_the_files_are_small() -> None:
    folder = ablation_records.DATA
    assert sum(path.stat().st_size for path in folder.iterdir()) < 1_000_000


def test_a_stored_run_with_a_detail_comes_out_again() -> None:
    detail = "stop at KL 0.015"
    again, stored = training.run(ppo_details.settings(detail)[3]), ppo_details.recorded(detail)
    np.testing.assert_allclose(again.mean_return, stored.returns[3], rtol=1e-6)
    np.testing.assert_allclose(again.kl, stored.kl[3], rtol=1e-3, atol=1e-7)


def test_the_button_trains_more_and_counts_them() -> None:
    more = MoreSeeds()
    assert "No agent" in more.view.value
    for k in (1, 2):
        more.button.click()
        assert f"clipped: 0 of {k * AT_ONCE} dead" in more.view.value
    assert f"no clip: {more.dead['no clip']} of {2 * AT_ONCE} dead" in more.view.value
    assert not more.button.disabled

"""What the figures of section 04 show equals the printed table, the bound and the closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from companion import trpo_spectrum
from companion.figures import trpo
from companion.figures.trpo import DELTA, DIRECTION, STEP
from companion.show import printed

DAMPINGS = STEP.controls["damping"].grid()


def test_step_at_its_defaults_is_the_printed_step() -> None:
    numbers = STEP.draw(**STEP.defaults()).numbers
    chapter = printed("trpo")
    shown = ["predicted gain", "gain of the full step", "mean KL of the full step"]
    assert [f"{numbers[name]:.4f}" for name in shown] == [
        *chapter["natural_gradient_10_cg"].values()
    ]
    assert numbers["halvings"] == chapter["line_search"]["halvings"]


@pytest.mark.parametrize("damping", DAMPINGS)
def test_no_iterate_is_above_its_bound(damping: float) -> None:
    found = trpo_spectrum.solve(damping, 10)
    assert np.all(found.error[1:] <= found.bound[1:] + 1e-12)  # rounding


@pytest.mark.parametrize("iterations", [1, 3, 10, 20])
def test_step_spends_the_whole_radius(iterations: int) -> None:
    numbers = STEP.draw(delta=0.1, damping=0.01, iterations=iterations).numbers
    assert numbers["quadratic KL, damped"] == pytest.approx(0.1, rel=1e-12)


def test_gain_at_an_angle_is_the_natural_gain_times_the_cosine() -> None:
    for turn in (-90, 0, 35, 90):
        for damping in (0.01, 0.1, 10.0):
            numbers = DIRECTION.draw(turn=turn, damping=damping).numbers
            assert abs(numbers["difference of these two"]) <= 1e-12
            assert numbers["predicted gain of the chosen step"] <= (
                numbers["predicted gain, natural step"] * (1 + 1e-12)
            )


def test_contour_has_the_mean_kl_that_its_label_says() -> None:
    here, batch = trpo.plane(0.1), trpo_spectrum.spectrum()
    steps = torch.from_numpy(here.contour @ here.frame @ batch.basis.T)
    kl = [batch.surrogate.evaluate(step)[1] for step in steps]
    np.testing.assert_allclose(kl, DELTA, rtol=1e-3)


def test_many_steps_are_measured_as_the_surrogate_measures_one() -> None:
    batch = trpo_spectrum.spectrum()
    steps = np.random.default_rng(0).normal(scale=[[0.01], [0.1], [1.0]], size=(3, 131))
    one_by_one = [batch.surrogate.evaluate(torch.from_numpy(batch.basis @ d)) for d in steps]
    np.testing.assert_allclose(np.transpose(trpo_spectrum.measure(steps)), one_by_one, rtol=1e-9)

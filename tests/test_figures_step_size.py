"""The numbers beside section 01's figures, against the softmax itself and against limits."""

import numpy as np
import pytest

from companion.figures.step_size import draw_logit_bounds, draw_sigmoid, logit_bounds
from companion.policy import softmax


@pytest.mark.parametrize("p", [0.001, 0.3, 0.5, 0.8, 0.97])
@pytest.mark.parametrize("clip_range", [0.05, 0.2, 0.5])
def test_a_change_of_the_bound_puts_the_ratio_on_the_edge(p, clip_range):
    logit = np.log(p / (1 - p))
    for change, edge in zip(logit_bounds(p, clip_range), (-clip_range, clip_range), strict=True):
        if np.isfinite(change):
            assert softmax([logit + change, 0.0])[0] / p == pytest.approx(1 + edge, abs=1e-12)
        else:
            assert edge > 0
            assert p * (1 + clip_range) >= 1


def test_narrow_bands_allow_eps_over_one_minus_p():
    p = np.array([0.1, 0.5, 0.9])
    low, high = logit_bounds(p, 1e-6)
    np.testing.assert_allclose(high, 1e-6 / (1 - p), rtol=1e-4)
    np.testing.assert_allclose(low, -1e-6 / (1 - p), rtol=1e-4)


@pytest.mark.parametrize(("p", "clip_range"), [(0.0, 0.2), (1.0, 0.2), (0.5, 0.0), (0.5, 1.0)])
def test_bounds_need_probabilities_and_ranges_inside_the_unit_interval(p, clip_range):
    with pytest.raises(ValueError, match="must lie strictly between 0 and 1"):
        logit_bounds(p, clip_range)


@pytest.mark.parametrize("clip_range", [0.05, 0.2, 0.5])
def test_the_width_shown_halves_between_indifference_and_certainty(clip_range):
    wide = draw_logit_bounds(clip_range, 0.5).numbers["width"]
    narrow = draw_logit_bounds(clip_range, 1 - 1e-9).numbers["width"]
    assert wide == pytest.approx(2 * np.log((1 + clip_range) / (1 - clip_range)))
    assert narrow == pytest.approx(wide / 2, rel=1e-6)


def test_the_sigmoid_shown_is_that_of_the_closed_form():
    numbers = draw_sigmoid(6.0, 2.0).numbers
    assert numbers["pi(a = 1) before"] == pytest.approx(1 / (1 + np.exp(-6)))
    assert numbers["pi(a = 1) after"] == pytest.approx(1 / (1 + np.exp(-8)))
    assert numbers["predicted to first order, slope * step"] == pytest.approx(
        2 * np.exp(-6) / (1 + np.exp(-6)) ** 2
    )

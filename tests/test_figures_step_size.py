"""The numbers beside section 01's figures, against the softmax itself and against limits."""

from __future__ import annotations

import numpy as np
import pytest

from companion.figures.greek import PI
from companion.figures.step_size import draw_logit_bounds, draw_sigmoid


@pytest.mark.parametrize("clip_range", [0.05, 0.2, 0.5])
def test_the_width_shown_halves_between_indifference_and_certainty(clip_range: float) -> None:
    wide = draw_logit_bounds(clip_range, 0.5).numbers["width"]
    narrow = draw_logit_bounds(clip_range, 1 - 1e-9).numbers["width"]
    assert wide == pytest.approx(2 * np.log((1 + clip_range) / (1 - clip_range)))
    assert narrow == pytest.approx(wide / 2, rel=1e-6)


def test_the_sigmoid_shown_is_that_of_the_closed_form() -> None:
    numbers = draw_sigmoid(6.0, 2.0).numbers
    assert numbers[f"{PI}(a = 1) before"] == pytest.approx(1 / (1 + np.exp(-6)))
    assert numbers[f"{PI}(a = 1) after"] == pytest.approx(1 / (1 + np.exp(-8)))
    assert numbers["predicted to first order, slope * step"] == pytest.approx(
        2 * np.exp(-6) / (1 + np.exp(-6)) ** 2
    )

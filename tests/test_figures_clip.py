"""The numbers beside section 05's figures, against the rule for each region."""

from __future__ import annotations

import pytest

from companion.figures.clip import draw_clip


@pytest.mark.parametrize(
    ("ratio", "for_good", "for_bad"), [(0.5, "1", "0"), (1.0, "1", "-1"), (1.5, "0", "-1")]
)
def test_the_slopes_shown_are_those_of_the_regions(
    ratio: float, for_good: str, for_bad: str
) -> None:
    numbers = draw_clip(ratio, 0.2, 0.28).numbers
    assert numbers["band"] == "[0.80, 1.28]"
    assert numbers["A = +1: derivative by the rule"] == for_good
    assert numbers["A = -1: derivative by the rule"] == for_bad
    assert numbers["A = +1: by differences"] == for_good
    assert numbers["A = -1: by differences"] == for_bad

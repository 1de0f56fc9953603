"""Claims and tables say what they should, and stop where they must."""

from __future__ import annotations

from typing import Any

import pytest

from companion.drawing import Slider
from companion.interval import Estimate
from companion.show import ClaimFailed, claim, matching, number, printed, table


@pytest.mark.parametrize(
    ("measured", "relation", "against"),
    [
        (1, "<=", 1),
        (0.5, "<", 1),
        (2, ">=", 2),
        (3.0, ">", 2),
        ("60 of 60", "==", "60 of 60"),
        (0.5, "in", (0.5, 0.6)),
        (Estimate(0.5, 0.4, 0.6), "in", (0.4, 0.6)),
    ],
)
def test_a_claim_that_holds_prints_one_line(
    measured: Any, relation: str, against: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    claim("PDL-1", "what", measured, relation, against)
    out = capsys.readouterr().out
    assert out.startswith("PDL-1 | what | ")
    assert out.endswith(" | holds\n")
    assert out.count("\n") == 1


@pytest.mark.parametrize(
    ("measured", "relation", "against"),
    [
        (1.0, "<", 1.0),
        (float("nan"), "<=", 1.0),
        (float("nan"), ">=", 1.0),
        ("59 of 60", "==", "60 of 60"),
        (Estimate(0.5, 0.3, 0.7), ">", 0.4),
        (Estimate(0.5, 0.3, 0.7), "<", 0.6),
        (Estimate(0.5, 0.3, 0.7), "in", (0.4, 0.8)),
    ],
)
def test_a_claim_that_does_not_hold_stops(measured: Any, relation: str, against: Any) -> None:
    with pytest.raises(ClaimFailed, match="does not hold"):
        claim("PDL-1", "what", measured, relation, against)


def test_an_unknown_relation_is_named() -> None:
    with pytest.raises(ValueError, match="relation must be one of"):
        claim("PDL-1", "what", 1, "=", 1)


def test_numbers_at_rounding_level_do_not_depend_on_the_machine() -> None:
    assert {number(x) for x in (0.0, 3e-16, -8e-15)} == {"< 1e-12"}
    assert number(0) == "0"


def test_a_table_aligns_numbers_right(capsys: pytest.CaptureFixture[str]) -> None:
    table(["name", "n"], [["a", 5], ["long name", 1234]])
    assert capsys.readouterr().out == "name           n\na              5\nlong name  1,234\n"


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="2 entries"):
        table(["a", "b"], [[1]])


def test_matching_counts_equal_strings() -> None:
    assert matching(["0.10", "0.2"], ["0.10", "0.20"]) == "1 of 2"


def test_printed_names_the_experiments() -> None:
    assert printed("mirror")["optimal_value"] == "6.976"
    with pytest.raises(KeyError, match="bandit"):
        printed("nothing")


@pytest.mark.parametrize(
    ("slider", "grid"),
    [
        (Slider("a", "", 0.5, 0.0, 1.0, 0.25), [0.0, 0.25, 0.5, 0.75, 1.0]),
        (Slider("a", "", 1.0, 0.1, 10.0, 0.5, log=True), [0.1, 0.316228, 1.0, 3.16228, 10.0]),
        (Slider("a", "", 2, 1, 4, 1, whole=True), [1, 2, 3, 4]),
    ],
)
def test_the_grid_is_where_the_slider_stops(slider: Slider, grid: list[float]) -> None:
    assert slider.grid() == grid


@pytest.mark.parametrize("bad", [{"start": 2.0}, {"step": 0.0}, {"low": 0.0, "log": True}])
def test_a_slider_that_cannot_move_is_refused(bad: dict[str, Any]) -> None:
    fields = {"start": 0.5, "low": 0.1, "high": 1.0, "step": 0.1} | bad
    with pytest.raises(ValueError, match="must"):
        Slider("a", "", **fields)

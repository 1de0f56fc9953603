"""Claims, tables and panels say what they should, and stop where they must."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from matplotlib.figure import Figure

from companion import show
from companion.drawing import Choice, Drawing, LiveFigure, Slider
from companion.interval import Estimate
from companion.show import ClaimFailed, Panel, claim, live, matching, number, printed, table


def draw_power(x: float, kind: str) -> Drawing:
    """Plot one point; refuse x = 3 so that a test can see an error."""
    if x == 3:
        raise ValueError("x must not be 3 <here>")
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([0, x])
    return Drawing(figure, {"square": x**2, "kind": kind}, f"A line to {x:g}.")


POWER = LiveFigure(
    draw_power,
    {
        "x": Slider("x", "a number", 1.0, 0.0, 4.0, 0.5),
        "kind": Choice("k", "kind", "one", ("one", "two")),
    },
)


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


def test_a_move_redraws_the_picture_and_the_numbers() -> None:
    panel = Panel(POWER)
    before = panel.image.value
    panel.controls["x"].value = 2.0
    assert panel.image.value != before
    assert bytes(panel.image.value).startswith(b"\x89PNG")
    assert "4" in panel.text.value
    panel.controls["kind"].value = "two"
    assert "two" in panel.text.value


def test_an_error_is_shown_and_the_next_move_draws_again() -> None:
    panel = Panel(POWER)
    panel.controls["x"].value = 3.0
    assert "x must not be 3 &lt;here&gt;" in panel.text.value
    panel.controls["x"].value = 2.0
    assert "square" in panel.text.value
    assert panel.image.layout.visibility == "visible"


def test_reset_returns_to_the_first_setting() -> None:
    panel = Panel(POWER)
    first = panel.image.value
    panel.controls["x"].value, panel.controls["kind"].value = 2.5, "two"
    panel.reset()
    assert panel.parameters() == {"x": 1.0, "kind": "one"}
    assert panel.image.value == first


def test_the_output_holds_a_picture_for_pages_without_a_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr(show, "display", lambda bundle, **_: shown.append(bundle))
    live(POWER)
    (bundle,) = shown
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert bundle["text/plain"].startswith("A line to 1.\n")
    assert "square" in bundle["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" in bundle
    json.dumps(bundle)


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

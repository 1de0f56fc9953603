"""The bandit's figure: the printed numbers, and no more training than a move of a slider needs."""

from __future__ import annotations

from companion.figures import bandit
from companion.figures.bandit import EPOCHS
from companion.show import printed
from tests.figure_data import plotted


def test_numbers_at_the_defaults_are_the_printed_ones() -> None:
    numbers = EPOCHS.draw(**EPOCHS.defaults()).numbers
    for name, columns in printed("bandit")["methods"].items():
        kl, outside, largest, improvement = (column[-1] for column in columns.values())
        assert numbers[name] == (
            f"KL {kl} nats, outside {outside}, largest ratio {largest}, improvement {improvement}"
        )


def test_plotted_epochs_are_the_printed_ones() -> None:
    data = plotted(EPOCHS.draw(**EPOCHS.defaults()).figure)
    book = printed("bandit")
    for line, columns in enumerate(book["methods"].values()):
        for panel, column in enumerate(columns.values()):
            y = data[f"axes {panel} line {line}"][1::2]
            assert [f"{y[epoch - 1]:.3f}" for epoch in book["epochs"]] == column


def test_a_narrower_band_moves_no_policy_but_the_clipped_one() -> None:
    start = EPOCHS.defaults() | {"epochs": 2}
    wide, narrow = (
        plotted(EPOCHS.draw(**(start | {"clip_range": width})).figure) for width in (0.2, 0.1)
    )
    for line, method in enumerate(bandit.LOOKS):
        kl, outside = f"axes 0 line {line}", f"axes 1 line {line}"
        assert (wide[kl] == narrow[kl]) == (method != "clip")
        assert wide[outside][1] < narrow[outside][1]


def test_moves_train_only_what_they_change() -> None:
    start = EPOCHS.defaults() | {"seed": 7}
    trained = []
    for move in ({}, {"epochs": 3}, {"beta": 1.5}, {"beta": 3.0}):
        before = bandit._run_once.cache_info().misses
        EPOCHS.draw(**(start | move))
        trained.append(bandit._run_once.cache_info().misses - before)
    assert trained == [4, 0, 2, 0]

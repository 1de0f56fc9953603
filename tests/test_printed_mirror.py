"""The chapter's printed mirror-descent table, string for string."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from companion.mdp import random_mdp
from companion.mirror import optimal_return
from companion.mirror_example import comparison, gap_as_printed
from companion.policy import FloatArray
from companion.show import printed

MDP = random_mdp(rng=np.random.default_rng(0))
CHAPTER: dict[str, Any] = printed("mirror")
Gaps = dict[tuple[str, str], FloatArray]


@pytest.fixture(scope="module")
def gaps() -> Gaps:
    return comparison(MDP)


def test_the_table_has_sixty_entries() -> None:
    assert sum(len(row["gap"]) for row in CHAPTER["rows"]) == 60


@pytest.mark.parametrize("row", CHAPTER["rows"], ids=lambda row: f"{row['method']}, {row['start']}")
def test_every_printed_gap(gaps: Gaps, row: dict[str, Any]) -> None:
    gap = gaps[row["method"], row["start"]]
    assert [gap_as_printed(gap[k]) for k in CHAPTER["k"]] == row["gap"]


def test_the_rows_come_in_the_printed_order(gaps: Gaps) -> None:
    assert list(gaps) == [(row["method"], row["start"]) for row in CHAPTER["rows"]]


def test_the_optimal_value() -> None:
    assert f"{optimal_return(MDP):.3f}" == CHAPTER["optimal_value"]

"""The chapter's printed TRPO step, digit for digit, from companion.trpo_example."""

from __future__ import annotations

import json
import math
from importlib import resources
from typing import Any

import numpy as np
import pytest
import torch

from companion import trpo_example
from companion.conjugate_gradient import cg_error_bound, conjugate_gradient
from companion.fisher import fisher_matrix, fisher_vector_product
from companion.trust_region import local_surrogate, trpo_step


@pytest.fixture(scope="module")
def example() -> trpo_example.Example:
    return trpo_example.run()


@pytest.fixture(scope="module")
def chapter() -> dict[str, Any]:
    text = resources.files("companion").joinpath("printed.json").read_text(encoding="utf-8")
    entry: dict[str, Any] = json.loads(text)["trpo"]
    return entry


def _rows(outcome: trpo_example.Outcome) -> dict[str, str]:
    return {
        "predicted_gain": f"{outcome.predicted_gain:.4f}",
        "actual_gain": f"{outcome.gain:.4f}",
        "actual_kl": f"{outcome.kl:.4f}",
    }


def test_every_printed_figure(example: trpo_example.Example, chapter: dict[str, Any]) -> None:
    errors = example.relative_error
    measured = {
        "parameters": example.parameters,
        "damped_fisher_eigenvalues": [f"{example.eigenvalues[i]:.2f}" for i in (0, -1)],
        "cg_relative_error": {str(j): f"{errors[j - 1]:.1e}" for j in (1, 2, 3, 5, 10)},
        "delta": 0.01,
        "natural_gradient_10_cg": _rows(example.natural),
        "line_search": {
            "halvings": example.search.halvings,
            "gain": f"{example.search.gain:.4f}",
            "kl": f"{example.search.kl:.4f}",
        },
        "vanilla_gradient": _rows(example.vanilla),
    }
    assert measured == chapter


def test_trpo_step_makes_the_printed_step(chapter: dict[str, Any]) -> None:
    policy, obs, actions, adv = trpo_example.problem()
    taken = trpo_step(policy, obs, actions, adv)
    assert f"{taken.predicted_gain:.4f}" == chapter["natural_gradient_10_cg"]["predicted_gain"]
    assert f"{taken.search.gain:.4f}" == chapter["line_search"]["gain"]
    assert f"{taken.search.kl:.4f}" == chapter["line_search"]["kl"]
    assert taken.search.halvings == chapter["line_search"]["halvings"]


def test_global_random_state_is_restored() -> None:
    torch.manual_seed(123)
    expected = torch.rand(3)
    torch.manual_seed(123)
    trpo_example.run(seed=5)
    assert torch.equal(torch.rand(3), expected)


def test_error_stays_under_the_bound_and_is_large_without_damping(
    example: trpo_example.Example,
) -> None:
    """TRPO-3 and TRPO-4: the same ten products, with and without damping."""
    condition_number = example.eigenvalues[-1] / example.eigenvalues[0]
    steps = np.arange(1, len(example.energy_error) + 1)
    assert (example.energy_error <= cg_error_bound(condition_number, steps)).all()
    undamped = trpo_example.run(damping=0.0)
    assert example.energy_error[-1] < 1e-3 < 0.5 < undamped.energy_error[-1]
    assert undamped.eigenvalues[0] == pytest.approx(0.0, abs=1e-6)


def test_undamped_errors_are_from_the_shortest_solution() -> None:
    policy, obs, actions, adv = trpo_example.problem()
    g, _ = local_surrogate(policy, obs, actions, adv)
    x = conjugate_gradient(fisher_vector_product(policy, obs), g).double()
    F = fisher_matrix(policy, obs).double()
    exact = torch.linalg.pinv(F, rtol=1e-7, hermitian=True) @ g.double()
    error = float((x - exact).norm() / exact.norm())
    assert trpo_example.run(damping=0.0).relative_error[-1] == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("seed", [0.5, -1, math.nan, True])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(ValueError, match=f"seed must be a whole number of at least 0; got {seed}"):
        trpo_example.problem(seed)


def test_the_printed_batch_does_not_depend_on_the_default_dtype(
    example: trpo_example.Example,
) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert trpo_example.run() == example
    finally:
        torch.set_default_dtype(torch.float32)

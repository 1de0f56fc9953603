"""The portable categorical draw against a plain loop over its definition, and its distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from companion.sampling import portable_categorical


def words(seed: int, n: int) -> list[int]:
    """The Mersenne Twister's first outputs; NumPy's legacy seeding is the one that torch uses."""
    twister = np.random.RandomState(seed)
    return [int(twister.randint(0, 2**32, dtype=np.uint32)) for _ in range(n)]


def sequential_draw(p: np.ndarray, word: int) -> list[int]:
    """The definition in protocols.md, one number at a time."""
    x = word % (2**31 - 1) or 1
    actions = []
    for row in p:
        best = -1.0
        for a, probability in enumerate(row):
            score = probability / -math.log(float(np.float32(x / (2**31 - 1))))
            if score > best:
                best, action = score, a
            x = 1132489760 * x % (2**31 - 1)
        actions.append(action)
    return actions


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), n_actions=st.integers(1, 7))
def test_equals_the_sequential_loop(seed: int, n: int, n_actions: int) -> None:
    p = np.random.default_rng(seed).dirichlet(np.ones(n_actions), size=n)
    expected = sequential_draw(p, words(seed, 1)[0])
    assert portable_categorical(torch.from_numpy(p), generator=generator(seed)).tolist() == expected


@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (500, 7)])
def test_advances_the_generator_by_one_word(shape: tuple[int, int]) -> None:
    drawn, p = generator(5), torch.full(shape, 1 / shape[1])
    for _ in range(3):
        portable_categorical(p, generator=drawn)
    # A 32-bit integer draw keeps the low 31 bits of one word.
    fourth = int(torch.empty((), dtype=torch.int32).random_(generator=drawn))
    assert fourth == words(5, 4)[3] % 2**31


def test_global_generator_is_touched_only_when_it_is_the_argument() -> None:
    p, before = torch.full((4, 2), 0.5), torch.get_rng_state()
    portable_categorical(p, generator=generator(0))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("p", [(0.5, 0.3, 0.15, 0.05), (0.97, 0.01, 0.01, 0.01)])
def test_frequencies_within_one_draw(p: tuple[float, ...]) -> None:
    rows = torch.tensor(p).expand(100_000, 4)
    for seed in range(5):
        counts = np.bincount(portable_categorical(rows, generator=generator(seed)), minlength=4)
        expected = len(rows) * np.array(p)
        assert stats.chisquare(counts, expected, sum_check=False).pvalue > 1e-3 / 5


def test_frequencies_over_draws_of_one_row() -> None:
    p, drawn = torch.tensor([[0.1, 0.2, 0.7]]), generator(0)
    counts = np.bincount(
        [int(portable_categorical(p, generator=drawn)) for _ in range(5_000)], minlength=3
    )
    assert stats.chisquare(counts, [500, 1000, 3500]).pvalue > 1e-3


def test_impossible_actions_are_never_drawn() -> None:
    p = torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]).repeat(20_000, 1)
    actions = portable_categorical(p, generator=generator(1)).reshape(-1, 2)
    assert (actions[:, 0] == 1).all()
    assert (actions[:, 1] != 1).all()


@pytest.mark.parametrize(("last", "drawn"), [((0.5, 0.5, 0.0), {0, 1}), ((0.5, 0.4, 0.1), {2})])
def test_uniform_that_rounds_to_one(last: tuple[float, ...], drawn: set[int]) -> None:
    # With this seed x_29 is 37 below the modulus: u_29 is 1 in float32, and -ln u_29 is 0.
    x = words(68625, 1)[0] * pow(1132489760, 29, 2**31 - 1) % (2**31 - 1)
    assert np.float32(x / (2**31 - 1)) == 1
    p = torch.tensor([(1 / 3, 1 / 3, 1 / 3)] * 9 + [last])
    assert int(portable_categorical(p, generator=generator(68625))[9]) in drawn


def test_same_actions_in_float32_and_float64_and_through_a_graph() -> None:
    logits = torch.randn(200, 4, generator=generator(3), requires_grad=True)
    p = logits.softmax(-1)
    actions = portable_categorical(p, generator=generator(0))
    assert torch.equal(actions, portable_categorical(p.double(), generator=generator(0)))
    assert actions.dtype == torch.int64


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([[0.5, 0.6]], r"p\[0\] must sum to 1 over its last axis; it sums to 1\.1"),
        ([[1.0, 0.0], [1.2, -0.2]], r"p must not be negative; p\[1, 1\] is -0.2"),
        ([[0.5, math.nan]], r"p must be finite; p\[0, 1\] is nan"),
        ([[math.inf, 0.0]], r"p must be finite; p\[0, 0\] is inf"),
        ([[]], "p is empty"),
        ([0.5, 0.5], r"shape \(2,\)"),
        ([[1, 0]], "p must be a floating tensor .*; got torch.int64"),
    ],
)
def test_bad_probabilities(p: list[object], message: str) -> None:
    state = torch.get_rng_state()
    with pytest.raises(ValueError, match=message):
        portable_categorical(torch.tensor(p), generator=torch.default_generator)
    assert torch.equal(torch.get_rng_state(), state)

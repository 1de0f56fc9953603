"""Benchmark of the compiled experiments: rows() for `make bench`.

One move of a slider is held against the readable version, which it equals; the whole printed tables
against the protocol as written. What was compiled before is loaded before the clock starts.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from bench_bandit import protocol_table
from bench_mirror import plain_comparison

from companion import bandit, mirror_example
from companion.bandit import BanditSettings
from companion.compiled import bandit as compiled_bandit
from companion.compiled import mirror as compiled_mirror
from companion.mdp import random_mdp

REPEATS = 9
METHODS = ("none", "clip", "kl")
Work = Callable[[int], object]  # of the repetition, so that no two moves are to the same value


def rows() -> list[tuple[str, float, float]]:
    """Return (name, seconds of the plain version, seconds of the compiled one), medians in turn."""
    mdp = random_mdp(rng=np.random.default_rng(0))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [
            ("eta moved, 6 runs, compiled",)
            + _medians(
                lambda k: mirror_example.comparison(mdp, (1.0 + k,), (1.0 + k,)),
                lambda k: compiled_mirror.comparison(mdp, (1.0 + k,), (1.0 + k,)),
            ),
            ("epsilon moved, 10 epochs, compiled",)
            + _medians(
                lambda k: bandit.run(BanditSettings(clip_range=0.1 + 0.01 * k)),
                lambda k: compiled_bandit.run(BanditSettings(clip_range=0.1 + 0.01 * k)),
            ),
            ("mirror table, 10 runs, compiled",)
            + _medians(lambda _: plain_comparison(mdp), lambda _: compiled_mirror.comparison(mdp)),
            ("bandit table, compiled",) + _medians(lambda _: protocol_table(), _bandit_table),
        ]
    finally:
        torch.set_num_threads(threads)


def _bandit_table(_: int) -> None:
    for kept in (compiled_bandit._training, compiled_bandit._problem, compiled_bandit._draws):
        kept.cache_clear()
    for method in METHODS:
        compiled_bandit.run(BanditSettings(method=method))


def _medians(plain: Work, compiled: Work) -> tuple[float, float]:
    compiled(REPEATS)
    seconds: list[list[float]] = [[], []]
    for k in range(REPEATS):
        for work, measured in zip((plain, compiled), seconds, strict=True):
            start = time.perf_counter()
            work(k)
            measured.append(time.perf_counter() - start)
    return statistics.median(seconds[0]), statistics.median(seconds[1])


if __name__ == "__main__":
    for name, plain_seconds, ours in rows():
        print(f"{name}: {plain_seconds * 1e3:.0f} ms, {ours * 1e3:.1f} ms", end=", ")
        print(f"{plain_seconds / ours:.1f} times faster")

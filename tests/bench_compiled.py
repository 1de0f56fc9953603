"""Benchmark of the compiled experiments: rows() for `make bench`.

One move of a slider is held against the readable version, which it equals; the whole printed tables
against the protocol as written.
"""

from __future__ import annotations

import numpy as np

from companion import bandit, mirror_example
from companion.bandit import BanditSettings
from companion.compiled import bandit as compiled_bandit
from companion.compiled import mirror as compiled_mirror
from companion.mdp import random_mdp
from tests import bench_bandit, bench_mirror
from tests.timing import medians

REPEATS = 9


def rows() -> list[tuple[str, float, float]]:
    """Return (name, seconds of the plain version, seconds of the compiled one)."""
    mdp = random_mdp(rng=np.random.default_rng(0))
    eta = medians(
        lambda k: list(mirror_example.comparison(mdp, (1.0 + k,), (1.0 + k,)).values()),
        lambda k: list(compiled_mirror.comparison(mdp, (1.0 + k,), (1.0 + k,)).values()),
        REPEATS,
        bench_mirror.agree,
    )
    epsilon = medians(
        lambda k: bandit.run(BanditSettings(clip_range=0.1 + 0.01 * k)),
        lambda k: compiled_bandit.run(BanditSettings(clip_range=0.1 + 0.01 * k)),
        REPEATS,
    )
    mirror_table = medians(
        lambda _: bench_mirror.plain_comparison(mdp),
        lambda _: list(compiled_mirror.comparison(mdp).values()),
        REPEATS,
        bench_mirror.agree,
    )
    bandit_table = medians(
        lambda _: bench_bandit.protocol_table(), _bandit_table, REPEATS, bench_bandit.agree
    )
    return [
        ("eta moved, 6 runs, compiled", *eta),
        ("epsilon moved, 10 epochs, compiled", *epsilon),
        ("mirror table, 10 runs, compiled", *mirror_table),
        ("bandit table, compiled", *bandit_table),
    ]


def _bandit_table(_: int) -> bench_bandit.Records:
    for kept in (compiled_bandit._training, compiled_bandit._problem, compiled_bandit._draws):
        kept.cache_clear()
    return {
        name: compiled_bandit.run(BanditSettings(method=method))
        for name, method in bench_bandit.METHODS.items()
    }


if __name__ == "__main__":
    print(rows())

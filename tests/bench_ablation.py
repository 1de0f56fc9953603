"""Benchmark of the chapter's 16 agents, compiled against one after the other: rows() for the table.

All 16 are trained on either side, once: the two draw other actions, so that one seed's run may be
long on one side and short on the other.
"""

from __future__ import annotations

from dataclasses import replace

from companion import ablation, ablation_lines
from companion.compiled import ppo
from tests.timing import seconds


def rows() -> list[tuple[str, float, float]]:
    """Return (name, seconds of the reference, seconds of the compiled version)."""
    every = ablation_lines.settings(0.2) + ablation_lines.settings(None)
    for train in (ablation.run, ppo.run):  # what loads and compiles at the first call
        train(replace(every[0], updates=1))
    reference, _ = seconds(lambda: [ablation.run(one) for one in every])
    ours, _ = seconds(lambda: ppo.run_all(every, threads=1))
    return [("ablation, 16 agents, compiled", reference, ours)]


if __name__ == "__main__":
    print(rows())

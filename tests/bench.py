"""What is fast, and how much: each row a ratio measured in this run (`make bench`).

Seconds are processor time, medians of calls in turn, on one thread: see `tests.timing`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests import (
    bench_ablation,
    bench_bandit,
    bench_compiled,
    bench_grading,
    bench_latency,
    bench_mirror,
    bench_peers,
    bench_trpo,
)

ROOT = Path(__file__).resolve().parent.parent


def notebook_seconds() -> float:
    """Time the execution of all sections in a copy, so that the notebooks stay as they are."""
    with tempfile.TemporaryDirectory() as copy:
        for part in ("book", "notebooks"):
            shutil.copytree(ROOT / part, Path(copy, part))
        shutil.copy(ROOT / "jupytext.toml", copy)
        start = time.perf_counter()
        script = Path(copy) / "book" / "sections.py"
        subprocess.run([sys.executable, script, "execute"], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start


def main() -> None:
    """Print the tables."""
    print(f"{'work':<42}{'plain':>10}{'companion':>12}{'times faster':>14}")
    for module in (bench_bandit, bench_mirror, bench_trpo, bench_compiled, bench_ablation):
        for name, plain, ours in module.rows():
            print(f"{name:<42}{plain:>8.4f} s{ours:>10.4f} s{plain / ours:>14.1f}", flush=True)
    print(f"\nall sections executed, two at a time: {notebook_seconds():.0f} s\n")
    print("growth with the number of states (4 actions)")
    print(f"{'work':<32}{'states':>8}{'time':>12}{'memory':>12}")
    for name, states, seconds, megabytes in bench_mirror.growth():
        print(f"{name:<32}{states:>8}{seconds:>10.5f} s{megabytes:>9.1f} MB", flush=True)
    print("\nkey press to changed picture in JupyterLab, against the same for a line of `interact`")
    bench_latency.main()
    print("\nthe instructor's desk")
    bench_grading.main()
    print("\nagainst other libraries")
    bench_peers.main()


if __name__ == "__main__":
    main()

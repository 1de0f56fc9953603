"""How every benchmark measures: both versions in turn, processor time of this process, medians."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import TypeVar

Result = TypeVar("Result")
Plain = TypeVar("Plain")
Ours = TypeVar("Ours")


def seconds(work: Callable[[], Result]) -> tuple[float, Result]:
    """Return the processor time of a call, all threads of this process together, and its result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def medians(
    plain: Callable[[int], Plain],
    ours: Callable[[int], Ours],
    repeats: int,
    agree: Callable[[Plain, Ours], None] = lambda _plain, _ours: None,
) -> tuple[float, float]:
    """Return the median seconds of two versions that take turns.

    Args:
        plain, ours: the versions, called with the number of the repetition, from 0 to repeats.
        repeats: timed calls of each; call number `repeats` comes first and only warms up.
        agree: raises an error if what the two versions return is not the same.
    """
    measured: list[tuple[float, float]] = []
    for k in (repeats, *range(repeats)):
        plain_seconds, expected = seconds(partial(plain, k))
        our_seconds, result = seconds(partial(ours, k))
        agree(expected, result)
        measured.append((plain_seconds, our_seconds))
    return median(p for p, _ in measured[1:]), median(o for _, o in measured[1:])

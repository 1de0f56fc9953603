"""Where parallel work runs: on the cores of this machine, or on a dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import joblib


@contextmanager
def backend(scheduler: str | None) -> Iterator[None]:
    """Let joblib run on a dask cluster, or on the cores of this machine.

    Args:
        scheduler: address of the cluster's; None for this machine.
    """
    with ExitStack() as stack:
        if scheduler is not None:
            from distributed import Client

            stack.enter_context(Client(scheduler))  # type: ignore[no-untyped-call]
            stack.enter_context(joblib.parallel_config(backend="dask"))
        yield

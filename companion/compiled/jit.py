"""How the numerical loops of this package are compiled, by Numba, once for each processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a function of arrays and numbers when it is first called, and keep it on disk.

    The machine code goes into the __pycache__ folder beside the function's module. It is compiled
    anew when that module changes, but not when another one does: a kernel may call and read only
    what stands in its own module.
    """
    return _compile(function, fastmath=False)


def summation(function: Function) -> Function:
    """Compile as `kernel` does, and let the compiler choose the order in which terms are added.

    A sum in one given order waits for each addition; partial sums are taken many at a time.
    """
    return _compile(function, fastmath={"reassoc"})


def lockless(function: Function) -> Function:
    """Compile as `summation` does, with a product and its sum in one instruction, for threads.

    While it runs, Python's other threads run too.
    """
    return _compile(function, fastmath={"reassoc", "contract"}, nogil=True)


def _compile(function: Function, fastmath: bool | set[str], nogil: bool = False) -> Function:
    # In Python's error model every division is a branch, and a loop with branches stays scalar.
    compile_it = numba.njit(cache=True, error_model="numpy", fastmath=fastmath, nogil=nogil)
    return cast("Function", compile_it(function))

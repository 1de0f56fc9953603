"""How much one part of one student may use."""

from __future__ import annotations

import resource
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one part may use: its cells, and its function in all cases."""

    wall_seconds: float = 20.0
    cpu_seconds: int = 10  # of each process
    memory_bytes: int = 2**30  # of all its processes together
    address_bytes: int = 2**34  # of each; torch maps gigabytes that it never touches
    processes: int = 32  # and threads
    file_bytes: int = 2**24  # each
    scratch_bytes: int = 2**26  # the temporary folder
    scratch_files: int = 10_000  # in it; each takes memory that its size does not show
    open_files: int = 128
    answer_bytes: int = 2**20  # what it hands back, as JSON


def bind(limits: Limits, whole_system: bool) -> None:
    """Put this process and all that it starts under the limits that the kernel keeps.

    Args:
        limits: the limits; the wall clock and the memory of all processes are not the kernel's.
        whole_system: the user runs nothing but this, so that the number of processes can be bound.
    """
    most = {
        resource.RLIMIT_AS: limits.address_bytes,
        resource.RLIMIT_DATA: limits.memory_bytes,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_STACK: 2**23,
    }
    if whole_system:
        most[resource.RLIMIT_NPROC] = limits.processes
    # Who ignores the signal at the first limit is killed at the second.
    cpu = limits.cpu_seconds
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    for kind, number in most.items():
        _, hard = resource.getrlimit(kind)
        number = number if hard == resource.RLIM_INFINITY else min(number, hard)
        resource.setrlimit(kind, (number, number))

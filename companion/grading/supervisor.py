"""The first process inside the sandbox: one child per part, watched and ended.

NumPy is imported once, here; each part gets a fork. The supervisor reads the cases of a part only
when they are called for, so that no earlier code had them in its memory, and leaves a part nothing
of the part before: no process, no file, no case in memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import re
import select
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy.random  # noqa: F401  (NumPy leaves it out until it is used, in each part anew)

from companion.grading import worker
from companion.grading.channel import Channel, Closed, Late, TooLong
from companion.grading.limits import Limits, bind

DUMPABLE = 4  # prctl's PR_SET_DUMPABLE
NICENESS = 5  # a student's processes never keep the supervisor waiting
RESIDENT = re.compile(rb"^Rss(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)


class TooMuchMemory(Exception):
    """A part's processes hold more memory, or have made more files, than they may."""


class Child:
    """The process of one part and its descendants."""

    def __init__(self, limits: Limits, scratch: Path, outer: Channel) -> None:
        self.limits, self.scratch = limits, scratch
        self.marker = select.poll()
        self.marker.register(outer.inbox, 0)  # which leaves a hang-up
        self.deadline = time.monotonic() + limits.wall_seconds
        self.status: int | None = None
        inbox, to_child = os.pipe()
        from_child, outbox = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            with contextlib.suppress(BaseException):
                for descriptor in (to_child, from_child, outer.inbox, outer.outbox):
                    os.close(descriptor)
                os.setsid()
                os.nice(NICENESS)
                bind(limits, whole_system=alone())
                worker.serve(Channel(inbox, outbox))
            os._exit(1)
        os.close(inbox)
        os.close(outbox)
        self.channel = Channel(from_child, to_child, self.look)

    def ask(self, message: memoryview) -> bytes:
        """Pass a message on, and return what ended it, a line each, or what the child answers."""
        cell = b""
        try:
            self.channel.send(message, self.deadline)
            while (reply := self._reply()).startswith(worker.BEGIN):
                cell = bytes(reply[len(worker.BEGIN) :][:100])
            return b"answer\n" + reply
        except Late:
            ending = b"timeout\n\n"
        except TooLong:
            ending = b"too long\n\n"
        except TooMuchMemory:
            ending = b"memory\n\n"
        except Closed:
            ending = b"crashed\n" + self.cause().encode() + b"\n"
        return ending + cell

    def _reply(self) -> bytearray:
        return self.channel.receive(self.limits.answer_bytes, self.deadline)

    def look(self) -> bool:
        """Reap what has ended, count the memory of the rest, and say whether the child is gone.

        If the marker is gone, no one is left to work for.
        """
        if self.marker.poll(0):
            self.end()
            os._exit(0)
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self.pid:
                    self.status = found[1]
        if sum(map(resident, self.processes())) > self.limits.memory_bytes:
            raise TooMuchMemory
        if alone():
            scratch = os.statvfs(self.scratch)
            if scratch.f_files - scratch.f_ffree > self.limits.scratch_files:
                raise TooMuchMemory
        return self.status is not None

    def processes(self) -> list[int]:
        """Return the processes of this part, as far as they can be known."""
        if not alone():
            return [self.pid]
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]

    def cause(self) -> str:
        """Say how the child ended."""
        with contextlib.suppress(ChildProcessError):
            if self.status is None:
                os.kill(self.pid, signal.SIGKILL)  # it has closed its pipe and goes on
                self.status = os.waitpid(self.pid, 0)[1]
        code = os.waitstatus_to_exitcode(self.status or 0)
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def end(self) -> None:
        """Kill the child and all that it has started, and wait until they are gone."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if alone():
                os.kill(-1, signal.SIGKILL)
            else:
                os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        os.close(self.channel.inbox)
        os.close(self.channel.outbox)


def alone() -> bool:
    """Say whether this sandbox has process numbers of its own, with the supervisor as first."""
    return SUPERVISOR == 1


def resident(process: int) -> int:
    """Return the bytes of memory that a process holds and shares with no file."""
    with contextlib.suppress(OSError):
        status = Path(f"/proc/{process}/status").read_bytes()
        return 1024 * sum(int(size) for size in RESIDENT.findall(status))
    return 0


def emptied(scratch: Path, mode: int) -> bool:
    """Empty the temporary folder, and say whether it is as it was at the beginning."""
    try:
        for entry in list(os.scandir(scratch)):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry, ignore_errors=True)
            else:
                os.unlink(entry)
        return scratch.stat().st_mode == mode and not any(scratch.iterdir())
    except (OSError, RecursionError):
        return False


def supervise(channel: Channel, limits: Limits) -> None:
    """Answer messages until the marker closes the channel."""
    scratch = Path.cwd()
    mode = scratch.stat().st_mode
    child: Child | None = None
    while True:
        try:
            message = channel.receive(worker.REQUEST_BYTES)
        except Closed:
            if child is not None:
                child.end()
            return
        end = message.index(b"\n")
        kind, *libraries = message[:end].decode().split()
        if kind == "start":
            if child is not None:
                child.end()
            child = None
            if not emptied(scratch, mode):
                channel.send(b"used\n")
                return
            for name in libraries:  # once, not in each part
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)
            child = Child(limits, scratch, channel)
        assert child is not None
        channel.send(child.ask(memoryview(message)[end + 1 :]))
        message[:] = bytes(len(message))  # the next part's process gets a copy of this memory


def main() -> None:
    """Keep the channel out of reach of what runs here, and serve."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    inbox, outbox = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)
    if sys.platform == "linux":
        # Then no process of the same user can trace this one or open its descriptors.
        ctypes.CDLL(None).prctl(DUMPABLE, 0, 0, 0, 0)
    with contextlib.suppress(Closed):
        supervise(Channel(inbox, outbox), Limits(**json.loads(sys.argv[1])))


SUPERVISOR = os.getpid()

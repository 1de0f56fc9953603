"""Messages over a pair of pipes: a length, then bytes; bounded in size and in time."""

from __future__ import annotations

import os
import select
import struct
import time
from collections.abc import Callable

HEADER = struct.Struct(">I")
TICK_SECONDS = 0.025  # how often someone who waits looks up
CHUNK = 2**16


class Closed(Exception):
    """The other side is gone."""


class Late(Exception):
    """The other side has not answered in time."""


class TooLong(Exception):
    """The other side announces a message above the limit."""


def _never() -> bool:
    return False


class Channel:
    """One side of a connection.

    Args:
        inbox: descriptor to read from.
        outbox: descriptor to write to.
        gone: called now and then while waiting; says that the other side has died. It may raise.
    """

    def __init__(self, inbox: int, outbox: int, gone: Callable[[], bool] = _never) -> None:
        self.inbox, self.outbox, self.gone = inbox, outbox, gone
        self.looked = time.monotonic()
        # A full pipe must not hold up a side that keeps an eye on the time.
        os.set_blocking(outbox, False)

    def send(self, message: bytes | memoryview, deadline: float = float("inf")) -> None:
        """Send a message, or raise Closed or Late (deadline as of time.monotonic)."""
        for part in (HEADER.pack(len(message)), message):
            rest = memoryview(part)
            while rest:
                self._wait(self.outbox, select.POLLOUT, deadline)
                try:
                    rest = rest[os.write(self.outbox, rest[:CHUNK]) :]
                except BlockingIOError:
                    continue
                except OSError as error:
                    raise Closed from error

    def receive(self, limit: int, deadline: float = float("inf")) -> bytearray:
        """Return the next message, or raise Closed, Late, or TooLong above limit bytes.

        There is one copy of it in memory, so that the receiver can wipe it out.
        """
        (size,) = HEADER.unpack(self._read(HEADER.size, deadline))
        if size > limit:
            raise TooLong
        return self._read(size, deadline)

    def _read(self, size: int, deadline: float) -> bytearray:
        message = bytearray(size)
        rest = memoryview(message)
        while rest:
            self._wait(self.inbox, select.POLLIN, deadline)
            count = os.readv(self.inbox, [rest[:CHUNK]])
            if not count:
                raise Closed
            rest = rest[count:]
        return message

    def _wait(self, descriptor: int, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(descriptor, event)
        while True:
            ready = poll.poll(1000 * TICK_SECONDS)
            now = time.monotonic()
            if now > deadline:  # also if byte after byte keeps coming
                raise Late
            if now - self.looked >= TICK_SECONDS:
                self.looked = now
                # What a process wrote before it died can still be read.
                if self.gone() and not poll.poll(0):
                    raise Closed
            if ready:
                return

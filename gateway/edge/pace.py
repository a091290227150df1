"""Whether a body comes fast enough to keep its place while others wait for room. Bytes and seconds."""

from __future__ import annotations

import asyncio

from gateway.core.memory import Hold

__all__ = ["GRACE_S", "SLOWEST", "Pace", "Paced"]

SLOWEST = 256 * 1024
"""Bytes a second, 2 Mbit/s, under which a large body gives way to others. A longer one has to be faster: to be there
in time at all, it must come at its length over `server.limits.body_read`."""
GRACE_S = 3.0
"""Seconds that it may be late; having been fast before does not give it more."""
_LOOK_S = 0.5
"""Seconds between two looks."""


class Pace:
    """One large body of `length` bytes (0: not known) that may take `within` seconds; `now` is monotonic."""

    __slots__ = ("_rate", "_until")

    def __init__(self, length: int, within: float, now: float) -> None:
        self._rate = max(SLOWEST, length / within)
        self._until = now + GRACE_S

    def came(self, size: int, now: float) -> None:
        """So many bytes more."""
        self._until = min(self._until + size / self._rate, now + GRACE_S)

    def begin(self, now: float) -> None:
        """It is read again; that it was not is not its client's fault."""
        self._until = now + GRACE_S

    def late(self, now: float) -> bool:
        """Whether less has come than should have."""
        return now > self._until


class Paced:
    """Looks again and again whether this body keeps its pace, and ends its time if not and others wait."""

    def __init__(self, pace: Pace, hold: Hold, deadline: asyncio.Timeout) -> None:
        self._pace = pace
        self._hold = hold
        self._deadline = deadline
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self.gave_way = False
        """Its time was ended."""

    def __enter__(self) -> Paced:
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def came(self, size: int) -> None:
        """More of it, of which there is a lot."""
        if self._timer is None:
            self._timer = self._loop.call_later(_LOOK_S, self._look)
        self._pace.came(size, self._loop.time())

    def begin(self) -> None:
        """It is read again."""
        self._pace.begin(self._loop.time())

    def _look(self) -> None:
        if self._hold.budget.others_wait(self._hold) and self._pace.late(self._loop.time()):
            self.gave_way = True
            self._deadline.reschedule(self._loop.time())
        else:
            self._timer = self._loop.call_later(_LOOK_S, self._look)

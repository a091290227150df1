"""One loop timer for every timeout of the relay.

A stream restarts its gap timer at each token, so restarting must cost next to nothing: it only moves the deadline. A
timer that comes due too early because it was restarted is put back into a later bucket, once per interval and not once
per token.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from gateway.clock import monotonic

__all__ = ["Timer", "TimerWheel"]


class Timer:
    """A single shot that calls back on the loop; made by `TimerWheel.start`."""

    __slots__ = ("_bucket", "_callback", "_wheel", "deadline", "seconds")

    def __init__(self, wheel: TimerWheel, seconds: float, callback: Callable[[], None]) -> None:
        self._wheel = wheel
        self._callback: Callable[[], None] | None = callback
        self._bucket = -1
        self.seconds = seconds
        self.deadline = math.inf

    @property
    def active(self) -> bool:
        """Whether it will still fire."""
        return self._bucket >= 0

    def touch(self, now: float) -> None:
        """Count `seconds` from `now` again; the cheap form for the hot path, for a timer that is active."""
        self.deadline = now + self.seconds

    def restart(self, seconds: float | None = None) -> None:
        """Count from now again, over a new length if given; also wakes a timer that fired or was cancelled."""
        if seconds is not None:
            self.seconds = seconds
        self._wheel.schedule(self)

    def cancel(self) -> None:
        """Do not fire; harmless when repeated."""
        self._wheel.forget(self)

    def close(self) -> None:
        """Never fire again, and let go of whom to call: one that holds its timer is a cycle otherwise."""
        self.cancel()
        self._callback = None

    def fire(self) -> None:
        """Call back; for the wheel."""
        if self._callback is not None:
            self._callback()


class TimerWheel:
    """Buckets of timers, one tick apart; ticks only while there is a timer. Fires up to one tick late, never early.

    `clock` gives seconds; a test passes its own and calls `advance` itself.
    """

    def __init__(self, *, tick_s: float = 0.05, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self._tick_s = tick_s
        self._buckets: dict[int, dict[Timer, None]] = {}
        self._reached = 0  # every bucket up to this one has been emptied
        self._handle: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return sum(len(bucket) for bucket in self._buckets.values())

    def start(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """A timer that fires `seconds` from now; infinity makes one that never does until it is restarted."""
        timer = Timer(self, seconds, callback)
        self.schedule(timer)
        return timer

    def schedule(self, timer: Timer) -> None:
        """Put a timer into the bucket of `seconds` from now."""
        self.forget(timer)
        now = self.clock()
        timer.deadline = now + timer.seconds
        if timer.deadline == math.inf:
            return
        if not self._buckets:
            self._reached = int(now / self._tick_s)
        self._place(timer)
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_later(self._tick_s, self._on_tick)

    def forget(self, timer: Timer) -> None:
        """Take a timer out of its bucket."""
        bucket = self._buckets.get(timer._bucket)
        if bucket is not None:
            bucket.pop(timer, None)
            if not bucket:
                del self._buckets[timer._bucket]
        timer._bucket = -1

    def advance(self) -> None:
        """Fire everything that is due by the clock."""
        now = self.clock()
        target = int(now / self._tick_s)
        if target - self._reached > len(self._buckets):
            due = sorted(number for number in self._buckets if number <= target)
        else:
            due = [number for number in range(self._reached + 1, target + 1) if number in self._buckets]
        self._reached = max(self._reached, target)
        for number in due:
            for timer in list(self._buckets.get(number, ())):
                if timer._bucket != number:  # an earlier callback cancelled or moved it
                    continue
                self.forget(timer)
                if timer.deadline > now:
                    self._place(timer)
                else:
                    self._fire(timer)

    def close(self) -> None:
        """Forget every timer without firing it."""
        self._buckets.clear()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self, timer: Timer) -> None:
        try:
            timer.fire()
        except Exception as error:  # one timer's fault must not lose the others of this tick
            context = {"message": "a timer's callback failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    def _place(self, timer: Timer) -> None:
        number = max(math.ceil(timer.deadline / self._tick_s), self._reached + 1)
        timer._bucket = number
        self._buckets.setdefault(number, {})[timer] = None

    def _on_tick(self) -> None:
        self._handle = None
        try:
            self.advance()
        finally:
            if self._buckets and self._handle is None:
                self._handle = asyncio.get_running_loop().call_later(self._tick_s, self._on_tick)

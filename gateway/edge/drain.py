"""Going away without cutting anybody off: what happens between SIGTERM and exit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

__all__ = ["Drain", "DrainTimes"]


@dataclass(frozen=True, slots=True)
class DrainTimes:
    """All in seconds.

    `settle`: new requests are still taken while load balancers learn that this process is not ready. `limit`
    (`server.drain`): how long streams may go on after that. `farewell`: for the last error events to leave. `cleanup`:
    for flushing what telemetry holds.
    """

    settle: float = 5.0
    limit: float = 120.0
    farewell: float = 2.0
    cleanup: float = 5.0


class Drain:
    """The sequence, driven by callbacks: not ready, settle, stop accepting, wait, cut the rest, clean up.

    `running` counts answers in progress; `cut` ends them with an in-band error and returns how many. `hurry` (a second
    signal) skips what is left of settling and waiting.
    """

    def __init__(
        self,
        times: DrainTimes,
        *,
        not_ready: Callable[[], None],
        stop_accepting: Callable[[], Awaitable[None]],
        running: Callable[[], int],
        cut: Callable[[], int],
        cleanup: Callable[[], Awaitable[None]],
        tick: float = 0.05,
    ) -> None:
        self._times = times
        self._not_ready = not_ready
        self._stop_accepting = stop_accepting
        self._running = running
        self._cut = cut
        self._cleanup = cleanup
        self._tick = tick
        self._hurry = asyncio.Event()

    def hurry(self) -> None:
        """Wait for nobody any more."""
        self._hurry.set()

    async def run(self) -> int:
        """Go through the sequence; returns how many answers had to be cut."""
        self._not_ready()
        await self._pause(self._times.settle)
        await self._stop_accepting()
        cut = 0
        if not await self._idle(self._times.limit, hurried=True):
            cut = self._cut()
            await self._idle(self._times.farewell, hurried=False)
        try:
            async with asyncio.timeout(self._times.cleanup):
                await self._cleanup()
        except TimeoutError:
            pass
        return cut

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._hurry.wait()
        except TimeoutError:
            return

    async def _idle(self, seconds: float, *, hurried: bool) -> bool:
        """Wait until nothing runs; False when something still does after `seconds`."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while self._running():
            if loop.time() >= end or (hurried and self._hurry.is_set()):
                return False
            await asyncio.sleep(self._tick)
        return True

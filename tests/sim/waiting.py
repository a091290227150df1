"""Waiting for the engine to get somewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gateway import clock


async def until(condition: Callable[[], object], within_s: float = 5.0) -> float:
    """Seconds until `condition()` holds; fails after `within_s`."""
    start = clock.monotonic()
    while not condition():
        assert clock.monotonic() - start < within_s, "it did not happen in time"
        await asyncio.sleep(0.002)
    return clock.monotonic() - start

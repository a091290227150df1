"""The only reader of real time; everything below the shell takes `now` as an argument."""

from __future__ import annotations

import time

__all__ = ["cpu", "monotonic", "wall"]


def monotonic() -> float:
    """Seconds on a clock that never goes back; the `now` of every decision."""
    return time.monotonic()


def wall() -> float:
    """Seconds since the Unix epoch, for journals and answers that a person reads."""
    return time.time()


def cpu() -> float:
    """Seconds of processor time that this process has taken, to see what something costs."""
    return time.process_time()

"""Tokens a second on each backend, from how its counters moved over the last few polls."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

__all__ = ["Rate", "Rates"]

_OVER = 5.0
"""Seconds that are averaged over: tokens of a stream are counted in lots."""


class Rate(NamedTuple):
    """Tokens a second: of prompts that were computed, and of answers. None before two polls."""

    prefill: float | None = None
    decode: float | None = None


class Rates:
    """What was polled lately. `now` in seconds on one monotonic clock."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[float, int, int]]] = {}

    def take(self, rows: Iterable[Mapping[str, Any]], now: float) -> None:
        """Take in the backends of one poll; one that is gone, or whose counters went back, begins anew."""
        kept: dict[str, deque[tuple[float, int, int]]] = {}
        for row in rows:
            name = str(row.get("name"))
            point = now, int(row.get("prefilled_tokens") or 0), int(row.get("generated_tokens") or 0)
            points = self._seen.get(name) or deque()
            if points and (points[-1][1] > point[1] or points[-1][2] > point[2]):
                points.clear()
            points.append(point)
            while len(points) > 2 and points[1][0] <= now - _OVER:
                points.popleft()
            kept[name] = points
        self._seen = kept

    def of(self, name: str) -> Rate:
        """Of one backend."""
        points = self._seen.get(name)
        if not points or points[-1][0] <= points[0][0]:
            return Rate()
        elapsed = points[-1][0] - points[0][0]
        return Rate((points[-1][1] - points[0][1]) / elapsed, (points[-1][2] - points[0][2]) / elapsed)

    @property
    def total(self) -> Rate:
        """Of all backends together."""
        found = [rate for name in self._seen if (rate := self.of(name)).prefill is not None]
        if not found:
            return Rate()
        return Rate(sum(rate.prefill or 0.0 for rate in found), sum(rate.decode or 0.0 for rate in found))

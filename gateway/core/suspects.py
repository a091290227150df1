"""Prompts that may break engines: one that broke two of them is held back for a while, so that it breaks no third."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

__all__ = ["Suspects"]

HOLD = 60.0
"""Seconds that a prompt is held back, and for which a broken engine is remembered against it: a restart or two."""
_REMEMBERED = 1024
"""Prompts that are remembered, the oldest out first."""


@dataclass(slots=True)
class _Suspicion:
    """Whom a prompt broke, and when last (seconds)."""

    since: float
    backends: set[str] = field(default_factory=set)


class Suspects:
    """By fingerprint of the whole prompt. Two different backends must have broken: a dead one alone proves nothing."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: OrderedDict[int, _Suspicion] = OrderedDict()

    def broke(self, prompt: int, backend: str, now: float) -> None:
        """The connection to this backend broke while it ran that prompt; `now` in monotonic seconds."""
        seen = self._seen.get(prompt)
        if seen is None or now - seen.since >= HOLD:
            seen = self._seen[prompt] = _Suspicion(now)
        seen.since = now
        seen.backends.add(backend)
        self._seen.move_to_end(prompt)
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)

    def held(self, prompt: int, now: float) -> float:
        """Seconds for which that prompt is still held back; 0 for nearly all."""
        seen = self._seen.get(prompt)
        if seen is None or len(seen.backends) < 2:
            return 0.0
        return max(0.0, seen.since + HOLD - now)

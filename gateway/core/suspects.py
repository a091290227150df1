"""Prompts that may break engines: one that broke two of them is held back for a while, so that it breaks no third."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

__all__ = ["HOLD", "Suspects"]

HOLD = 600.0
"""Seconds that a prompt is held back, and for which a broken engine is remembered against it."""
_AT_ONCE = 2.0
"""Seconds after its first token within which a break is laid at the prompt's door: what it asks for breaks an engine in
prefill or in the first steps."""
_LATER = 0.5
"""What a break counts in the middle of a long answer. More often than not something else broke that engine."""
_ENOUGH = 2.0
_REMEMBERED = 1024
"""Prompts that are remembered, the oldest out first."""


@dataclass(slots=True)
class _Suspicion:
    """Whom a prompt broke, each with what it counts, and when last (seconds)."""

    since: float
    backends: dict[str, float] = field(default_factory=dict)


class Suspects:
    """By fingerprint of the whole prompt. Different backends must have broken: a dead one alone proves nothing."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: OrderedDict[int, _Suspicion] = OrderedDict()

    def broke(self, prompt: int, backend: str, now: float, *, decoded: float | None = None) -> None:
        """The connection to this backend broke while it ran that prompt; `now` in monotonic seconds.

        `decoded`: seconds since its first token; None: there was none yet.
        """
        seen = self._seen.get(prompt)
        if seen is None or now - seen.since >= HOLD:
            seen = self._seen[prompt] = _Suspicion(now)
        seen.since = now
        counts = 1.0 if decoded is None or decoded <= _AT_ONCE else _LATER
        seen.backends[backend] = max(counts, seen.backends.get(backend, 0.0))
        self._seen.move_to_end(prompt)
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)

    def held(self, prompt: int, now: float) -> float:
        """Seconds for which that prompt is still held back; 0 for nearly all."""
        seen = self._seen.get(prompt)
        if seen is None or sum(seen.backends.values()) < _ENOUGH:
            return 0.0
        return max(0.0, seen.since + HOLD - now)

"""A decision and its trace: the same value answers the client, fills the journal and feeds `explain`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from gateway.core.footprint import Footprint
from gateway.core.reasons import Reason

__all__ = ["Candidate", "Decision", "Trace", "Verdict"]


_NEVER = frozenset(
    (
        Reason.NOT_SERVED,
        Reason.OUTSIDE_BOUNDARY,
        Reason.MISSING_ABILITY,
        Reason.SURFACE_NOT_OFFERED,
        Reason.WINDOW_TOO_SMALL,
        Reason.POOL_TOO_SMALL,
        Reason.DRAINING,
    )
)
"""Reasons that no waiting removes."""


class Verdict(StrEnum):
    """What happens to the request now."""

    ADMIT = "admit"
    WAIT = "wait"
    SHED = "shed"
    """Was queued, gives up: timed out or can't make its deadline."""
    REJECT = "reject"
    """Never entered the queue."""


class Candidate(NamedTuple):
    """One backend as it was weighed: the terms of its cost in seconds, or the reason it fell out.

    A named tuple, since every decision makes one for each backend and they are made three times as fast.
    """

    backend: str
    model: str
    tier: int = 0
    """0: the model asked for; 1..: its fallbacks in order."""
    reason: Reason | None = None
    limit: float | None = None
    """The limit that `reason` speaks of (tokens, requests or seconds), and below what was needed."""
    needed: float | None = None
    terms: tuple[tuple[str, float], ...] = ()
    total: float | None = None
    footprint: Footprint | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """Every candidate of one decision."""

    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, on what grounds; `now` and `roll` make it repeatable bit for bit."""

    request: str
    verdict: Verdict
    reason: Reason
    now: float
    roll: float
    backend: str | None = None
    model: str | None = None
    """The model id that will answer; another than was asked for when a fallback was taken."""
    served_as: str | None = None
    tier: int = 0
    footprint: Footprint | None = None
    predicted_ttft: float | None = None
    """Seconds from sending to the first token."""
    predicted_prefill: float = 0.0
    """Seconds of prefill that this adds to the backend's backlog."""
    predicted_tpot: float | None = None
    retry_after: float | None = None
    """Seconds; set on shed and reject when trying again can help."""
    limit: int | None = None
    """Tokens: the largest prompt and output that could have been served, on CONTEXT_TOO_LONG."""
    trace: Trace = field(default_factory=Trace)

    @property
    def alternatives(self) -> frozenset[str]:
        """Names of the other backends that may serve this request, working or not."""
        return frozenset(
            [c.backend for c in self.trace.candidates if c.backend != self.backend and c.reason not in _NEVER]
        )

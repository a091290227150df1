"""A decision and its trace: the same value answers the client, fills the journal and feeds `explain`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from gateway.core.bounds import Bound
from gateway.core.footprint import Footprint
from gateway.core.quota import Shortfall
from gateway.core.reasons import Reason

__all__ = ["Candidate", "Decision", "Trace", "Verdict", "Weighed"]


_NEVER = frozenset(
    (
        Reason.NOT_SERVED,
        Reason.OUTSIDE_BOUNDARY,
        Reason.MISSING_ABILITY,
        Reason.SURFACE_NOT_OFFERED,
        Reason.NOT_THE_KEEPER,
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


class Weighed(Protocol):
    """A backend that was weighed, and that nothing changes any more: what a candidate is made of."""

    @property
    def backend(self) -> str:
        """Its name."""
        ...

    @property
    def reason(self) -> Reason | None:
        """Why it fell out."""
        ...

    @property
    def limit(self) -> float | None:
        """The limit that it met."""
        ...

    def candidate(self) -> Candidate:
        """Its line of the trace."""
        ...


class Trace:
    """Every candidate of one decision. A value: equal to any other trace of the same candidates.

    Made of candidates, or of what was weighed: then they are put together when somebody reads them. Nobody does so for
    most decisions, those to wait foremost, and it takes a fifth as long as deciding.
    """

    __slots__ = ("_found",)

    def __init__(self, found: tuple[Candidate, ...] | list[Weighed] = ()) -> None:
        self._found: tuple[Candidate, ...] | list[Weighed] = found

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All of them, in the order in which they were weighed."""
        found = self._found
        if not isinstance(found, tuple):
            # Two threads that come here at once make the same value twice.
            found = self._found = tuple([weighed.candidate() for weighed in found])
        return found

    @property
    def reasons(self) -> list[tuple[str, Reason | None]]:
        """Each candidate's backend, and why it fell out."""
        return [(one.backend, one.reason) for one in self._found]

    @property
    def limits(self) -> list[tuple[Reason | None, float | None]]:
        """Why each candidate fell out, and the limit that it met."""
        return [(one.reason, one.limit) for one in self._found]

    def __eq__(self, other: object) -> bool:
        return self.candidates == other.candidates if isinstance(other, Trace) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.candidates)

    def __repr__(self) -> str:
        return f"Trace({self.candidates!r})"


@dataclass(slots=True)
class Decision:
    """What was decided, on what grounds; `now` and `roll` make it repeatable bit for bit.

    Never changed once made. Not frozen all the same: that would make it take six times as long to make, a twentieth of
    the time in which it is decided.
    """

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
    bound: Bound | None = None
    """Whose limit that is."""
    needed: int | None = None
    """Tokens that the request is short of it with: its prompt as estimated, and the least output."""
    trace: Trace = field(default_factory=Trace)
    quota: Shortfall | None = None
    """The limit of its client that it met, on OVER_QUOTA."""

    @property
    def alternatives(self) -> frozenset[str]:
        """Names of the other backends that may serve this request, working or not."""
        return frozenset([name for name, reason in self.trace.reasons if name != self.backend and reason not in _NEVER])

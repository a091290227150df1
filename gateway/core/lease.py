"""The right to send one request to one backend, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.backend import Offer
from gateway.core.decision import Decision
from gateway.core.failure import FailureKind
from gateway.core.prefix.chain import Chain
from gateway.core.request import Request
from gateway.core.service import Service
from gateway.core.sessions import Divergence
from gateway.core.slot_files import Swap

__all__ = ["Ahead", "Ended", "Lease"]


@dataclass(frozen=True, slots=True)
class Ahead:
    """What stands before a request in the queue: requests, and the seconds in which they should have been served."""

    requests: int
    seconds: float


@dataclass(slots=True, eq=False)
class Lease:
    """Settled exactly once, by whoever holds it. `granted_at` in seconds on the monotonic clock."""

    id: str
    request: Request
    chain: Chain
    decision: Decision
    backend: str
    offer: Offer
    block: int
    granted_at: float
    service: Service | None = None
    """What it is expected to take of its device; None where nobody counts that."""
    ahead: Ahead | None = None
    """Who stood before its request in the queue when it came; None: nobody did."""
    generated: int = 0
    """Output tokens so far, of all choices."""
    extended: int = 0
    """Output tokens reserved beyond its footprint's, as its answer grew."""
    answered_at: float | None = None
    """When its first token came."""
    corrected: int = 0
    """Tokens by which its reservation changed when its engine had counted the prompt."""
    counted_prompt: int | None = None
    counted_output: int = 0
    """Tokens as its engine counted them, once it has."""
    divergence: Divergence | None = None
    """Where its prompt parts from the last one of its conversation though it goes on from it."""
    slot: int | None = None
    """The engine's slot that it is to use; None: any."""
    swap: Swap | None = None
    """What is to be saved and restored before it is sent."""
    settled: bool = False

    @property
    def reserved_output(self) -> int:
        """Output tokens reserved for it, over all choices."""
        footprint = self.decision.footprint
        return self.extended if footprint is None else footprint.output + self.extended

    @property
    def reserved(self) -> int:
        """Tokens of KV cache that are reserved for it now."""
        footprint = self.decision.footprint
        if footprint is None:
            return 0
        grown = footprint.kv + self.extended
        if footprint.ceiling:
            grown = max(footprint.kv, min(grown, footprint.ceiling))
        return max(0, grown + self.corrected)

    @property
    def queued(self) -> float:
        """Seconds that the request waited in the gateway before this grant."""
        return self.granted_at - self.request.arrival


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attempt ended. Tokens and seconds; None where it is not known. The default: the client left at once."""

    completed: bool = False
    failure: FailureKind | None = None
    rest: float | None = None
    """Seconds for which a busy engine asked to be left alone."""
    shown: bool = False
    """Something of the answer had reached the client."""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    events: int | None = None
    """Streamed events that carried text."""
    garbage: bool = False
    """It was one character over and over."""
    finished: bool = False
    """The model ended the answer itself."""
    calls: bool = False
    """It ended with calls of tools, whose results the next request brings."""
    ttft: float | None = None
    tpot: float | None = None
    prefill_seconds: float | None = None
    """By the engine's own clock."""
    text_only: bool = True
    media_tokens: int | None = None
    """Of the prompt's: pictures, sounds and videos, where the engine tells them apart."""

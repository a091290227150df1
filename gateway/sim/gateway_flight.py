"""One request of a simulated gateway: waiting, then under a lease, and what the gateway sees of its answer."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.config.endpoint import Timeouts
from gateway.core.estimators.prompt_tokens import TextCounts
from gateway.core.failure import FailureKind
from gateway.core.lease import Ended, Lease
from gateway.core.patience import first_token_limit
from gateway.core.prefix.chain import Chain
from gateway.core.request import Request
from gateway.sim.engine_model import Finished

__all__ = ["Flight", "Pending"]


@dataclass(slots=True, eq=False)
class Pending:
    """A request in the gateway's queue, or on its way into it. `looked_at`: the beliefs that its hits come from."""

    request: Request
    chain: Chain
    counts: TextCounts
    prompt_tokens: int
    """What an engine will count; the gateway reads it only in the answer's usage."""
    output_tokens: int
    looked_at: tuple[int, int] = (-1, -1)


@dataclass(slots=True, eq=False)
class Flight:
    """A request that an engine has. Seconds of virtual time."""

    pending: Pending
    lease: Lease
    sent_at: float
    first_token_at: float | None = None
    moved_at: float | None = None
    """When its last token came."""
    tokens: int = 0

    def silent(self, now: float, timeouts: Timeouts) -> FailureKind | None:
        """What the relay's timers would say: no first token, or no further one, for too long."""
        if self.moved_at is not None:
            return FailureKind.TOKEN_GAP if now - self.moved_at >= timeouts.token_gap else None
        limit = timeouts.first_token
        if limit is None:
            limit = first_token_limit(self.lease.decision.predicted_ttft or 0.0)
        return FailureKind.FIRST_TOKEN if now - self.sent_at >= limit else None

    def ended(self, now: float, finished: Finished) -> Ended:
        """What a whole answer tells: its usage and its times."""
        if finished.reason == "error":
            return self.failed(FailureKind.MEMORY)
        room = max(1, self.lease.offer.window - self.pending.prompt_tokens)
        output, first = min(self.pending.output_tokens, room), self.first_token_at
        return Ended(
            completed=True,
            shown=True,
            prompt_tokens=self.pending.prompt_tokens,
            output_tokens=output,
            cached_tokens=finished.cached_tokens,
            finished=finished.reason == "stop",
            ttft=None if first is None else first - self.sent_at,
            tpot=None if first is None or output < 2 else (now - first) / (output - 1),
        )

    def failed(self, kind: FailureKind) -> Ended:
        """What an attempt tells that did not work out."""
        return Ended(failure=kind, shown=self.first_token_at is not None, output_tokens=self.tokens or None)

    def left(self) -> Ended:
        """What is known of an answer whose client left."""
        return Ended(shown=self.first_token_at is not None, output_tokens=self.tokens or None)

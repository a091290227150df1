"""What one exchange with an engine took; its numbers become the next snapshot."""

from __future__ import annotations

from collections.abc import Callable

from gateway.clock import monotonic
from gateway.relay.sink import Headers

__all__ = ["Meter"]


class Meter:
    """Times in seconds of `clock`, None until they happen.

    `chunks` counts reads from the engine that carried body bytes, `bytes` those bytes, `tokens` the events that carried
    generated text. `max_gap` is the longest pause between two reads with tokens, in seconds. `headers`: the answer's.
    `garbage`: one character over and over.
    """

    __slots__ = (
        "bytes",
        "chunks",
        "clock",
        "ended_at",
        "first_token_at",
        "garbage",
        "head_at",
        "headers",
        "last_token_at",
        "max_gap",
        "sent_at",
        "tokens",
    )

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self.sent_at: float | None = None
        self.head_at: float | None = None
        self.headers: Headers = ()
        self.first_token_at: float | None = None
        self.last_token_at: float | None = None
        self.ended_at: float | None = None
        self.chunks = 0
        self.bytes = 0
        self.tokens = 0
        self.max_gap = 0.0
        self.garbage = False

    def token(self, now: float, count: int) -> None:
        """Note a read at `now` that carried `count` token events."""
        last = self.last_token_at
        if last is None:
            self.first_token_at = now
        elif now - last > self.max_gap:
            self.max_gap = now - last
        self.last_token_at = now
        self.tokens += count

    @property
    def ttft(self) -> float | None:
        """Seconds from the request sent to the engine to its first token (TTFT, the queue in the gateway left out)."""
        if self.sent_at is None or self.first_token_at is None:
            return None
        return self.first_token_at - self.sent_at

    @property
    def tpot(self) -> float | None:
        """Seconds a token event after the first (TPOT); None below two events."""
        if self.first_token_at is None or self.last_token_at is None or self.tokens < 2:
            return None
        return (self.last_token_at - self.first_token_at) / (self.tokens - 1)

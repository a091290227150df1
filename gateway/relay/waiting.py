"""A client whose stream is still to begin, kept from giving up while its request waits in the gateway's queue."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from gateway.relay.downstream import Downstream
from gateway.relay.headers import stream_headers
from gateway.relay.wheel import TimerWheel

__all__ = ["Waiting"]


class Waiting:
    """Within it, `quiet_s` seconds without a lease open the stream, and every `keepalive_s` more draw a keepalive.

    Until then the status line is held back: a refusal with its own status and Retry-After tells a client more than an
    error inside a stream of status 200. A whole answer has no place for keepalives.
    """

    __slots__ = ("_down", "_keepalive_s", "_timer")

    def __init__(self, down: Downstream, wheel: TimerWheel, *, quiet_s: float, keepalive_s: float) -> None:
        self._down = down
        self._keepalive_s = keepalive_s
        self._timer = wheel.start(keepalive_s if down.started else quiet_s, self._speak)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()

    def _speak(self) -> None:
        down = self._down
        if down.closed:
            return
        if not down.started:
            down.start(200, stream_headers((), down.dialect.stream_type), None)
        down.write(down.dialect.keepalive)
        self._timer.restart(self._keepalive_s)

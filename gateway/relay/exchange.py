"""One request to an engine and the wait for its end: the part that streams, collected answers and raw bytes share."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from gateway.clock import wall
from gateway.errors import BadStatus, TimedOut, UpstreamError
from gateway.relay.call import Call
from gateway.relay.connection import Connection, Stale
from gateway.relay.headers import asked_to_wait, first
from gateway.relay.limits import Limits
from gateway.relay.meter import Meter
from gateway.relay.sink import Headers
from gateway.relay.upstream import Pool
from gateway.relay.wheel import TimerWheel

__all__ = ["Exchange"]

_ERROR_BYTES = 1 << 20  # of an error answer's body; more is cut off


class Exchange(ABC):
    """A sink with an end: `run` returns when the answer is complete and raises what else ended it.

    One future in all. A subclass fills in `body`, `finish` and, where a client is written to, `lost`.
    Whatever ends it, the connection is kept by the pool if the answer was read to its end, and closed otherwise.
    """

    def __init__(self, pool: Pool, call: Call, meter: Meter, limits: Limits, wheel: TimerWheel) -> None:
        self.pool = pool
        self.call = call
        self.meter = meter
        self.limits = limits
        self.wheel = wheel
        self.connection: Connection | None = None
        self.headers: Headers = ()
        self.status = 0
        self.paused = False
        self.over = False
        self._failure: BaseException | None = None
        self._refusal: list[bytes] | None = None  # the body of an error answer
        self._refused = 0
        self._done: asyncio.Future[None] | None = None
        self._first = wheel.start(float("inf"), self._first_late)
        self._gap = wheel.start(float("inf"), self._gap_late)

    async def run(self) -> None:
        """Send the request and wait for the end of its answer.

        Raises ConnectFailed, TimedOut, BadStatus, StreamBroken, and ClientClosed where there is a client.
        """
        head = self.call.head()
        try:
            failure = await self._attempt(head, fresh=False)
            if isinstance(failure, Stale):
                failure = await self._attempt(head, fresh=True)
        finally:
            self.over = True
            self._stop()
            # No cycle is left, so that a large body, or an answer, is free at once and not at the next collection.
            self._first.close()
            self._gap.close()
            self.meter.ended_at = self.meter.clock()
        if failure is not None:
            raise failure

    # --- Sink ---

    def head(self, status: int, headers: Headers) -> None:
        """Note the head; an answer with another status than is due is collected and raised as BadStatus."""
        self.meter.head_at, self.meter.headers = self.meter.clock(), headers
        self.status, self.headers = status, headers
        if not self.due(status):
            self.refuse()

    def data(self, data: bytes) -> None:
        """Count the bytes and pass them to `body`, or to the error answer."""
        meter = self.meter
        meter.chunks += 1
        meter.bytes += len(data)
        if self._refusal is None:
            self.body(data)
        else:
            self._collect_refusal(data)

    def end(self) -> None:
        """The answer is complete by its framing."""
        if self._refusal is not None:
            self.fail(self.refused(self.status, b"".join(self._refusal)))
        else:
            self.finish()

    def broken(self, error: UpstreamError) -> None:
        """The connection is gone, or a limit was passed."""
        if self.over:
            return
        if self._refusal is not None:  # the status alone says enough
            self.fail(self.refused(self.status, b"".join(self._refusal)))
        else:
            self.lost(error)

    # --- for subclasses ---

    def due(self, status: int) -> bool:
        """Whether this is the status of an answer. 204 has no body, and no engine answers with another 2xx."""
        return status == 200

    @abstractmethod
    def body(self, data: bytes) -> None:
        """Body bytes of an answer."""

    def finish(self) -> None:
        """The body of an answer is complete."""
        self.complete()

    def lost(self, error: UpstreamError) -> None:
        """An answer, or the wait for one, was cut short by the engine or by a limit."""
        self.fail(error)

    def complete(self) -> None:
        """End well."""
        self._settle(None)

    def fail(self, error: BaseException) -> None:
        """End with an error; the connection is closed if the answer is not complete."""
        self._settle(error)

    def refuse(self) -> None:
        """Take the body for an error answer: collect it and raise it as BadStatus."""
        self._refusal = []

    def refused(self, status: int, payload: bytes) -> BadStatus:
        """The error for an error answer of the engine; its Retry-After is kept, in seconds."""
        return BadStatus(
            f"the engine answered with status {status}",
            status=status if 400 <= status < 600 else 502,
            payload=payload,
            retry_after=asked_to_wait(first(self.headers, "retry-after"), wall()),
        )

    def first_came(self, now: float) -> None:
        """The first token is there: from now on the gap counts."""
        if self._first.active:
            self._first.cancel()
        self.alive(now)

    def more_came(self, now: float) -> None:
        """A piece of an answer whose end is what counts: the gap starts anew, and the limit of the whole goes on."""
        if self._gap.active:
            self._gap.touch(now)
        else:
            self._gap.restart(self.limits.token_gap_s)

    def alive(self, now: float) -> None:
        """Something other than a comment came: the gap starts anew."""
        if self._gap.active:
            self._gap.touch(now)
        elif not self._first.active:
            self._gap.restart(self.limits.token_gap_s)

    def shorten_gap(self, seconds: float) -> None:
        """Nothing of worth is due any more: wait at most `seconds` for the end."""
        self._first.cancel()
        self._gap.restart(min(seconds, self.limits.token_gap_s))

    # --- inside ---

    async def _attempt(self, head: bytes, *, fresh: bool) -> BaseException | None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._done, self._failure, self.over = done, None, False
        self.connection = await self.pool.call(
            head, self.call.pieces, self, fresh=fresh, connect_s=self.limits.connect_s
        )
        self.meter.sent_at = self.meter.clock()
        self._first.restart(self.limits.first_token_s)
        await done
        return self._failure

    def _collect_refusal(self, data: bytes) -> None:
        assert self._refusal is not None
        room = _ERROR_BYTES - self._refused
        self._refusal.append(data[:room])
        self._refused += len(data)
        if self._refused > _ERROR_BYTES:
            self.fail(self.refused(self.status, b"".join(self._refusal)))

    def _settle(self, error: BaseException | None) -> None:
        if self.over:
            return
        self.over = True
        self._failure = error
        self._stop()
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    def _stop(self) -> None:
        self._first.cancel()
        self._gap.cancel()
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.release(self)

    def _first_late(self) -> None:
        limits = self.limits
        what = "whole answer" if limits.whole_by else "first token"
        told = f"limit: {limits.whole_by or 'first_token'}"
        self.broken(TimedOut(f"the engine gave no {what} within {limits.first_token_s:g} s ({told})"))

    def _gap_late(self) -> None:
        if self.paused:  # it is the client that does not read
            self._gap.restart()
            return
        seconds = self.limits.token_gap_s
        self.broken(TimedOut(f"the engine gave no further token for {seconds:g} s (limit: token_gap)"))

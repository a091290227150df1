"""The half of an exchange that writes to a client: backpressure, the write limit, and how it ends after a start."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from gateway.errors import ClientClosed, StreamBroken, UpstreamError
from gateway.relay.call import Call
from gateway.relay.downstream import Downstream
from gateway.relay.exchange import Exchange
from gateway.relay.limits import Limits
from gateway.relay.meter import Meter
from gateway.relay.upstream import Pool
from gateway.relay.wheel import TimerWheel

__all__ = ["SLICE", "ClientExchange"]

SLICE = 128 * 1024
"""Bytes of a long piece that are written at a time: what waits for a slow client is no copy of all of it."""
_TURN = 8 * SLICE
"""Bytes that are written in one turn of the loop, however fast the client reads."""


class ClientExchange(Exchange):
    """Holds at most the client's high-water mark plus one read: over it, the engine is not read.

    Pieces of an answer that are long, and held anyway, wait here and are written slice by slice.
    """

    def __init__(
        self, pool: Pool, call: Call, down: Downstream, meter: Meter, limits: Limits, wheel: TimerWheel
    ) -> None:
        super().__init__(pool, call, meter, limits, wheel)
        self.down = down
        self._unsent: deque[bytes] = deque()
        self._at = 0  # how much of the first of them is written
        self._ending = False  # nothing comes after them
        self._write = wheel.start(float("inf"), self._write_late)

    async def run(self) -> None:
        """As `Exchange.run`; the client's drain callback is ours for that long."""
        self.down.on_drain = self._drained
        try:
            await super().run()
        finally:
            self._write.close()
            self.down.on_drain = None

    def write(self, data: bytes) -> None:
        """One write to the client; stops reading the engine when the client is slow."""
        if self._unsent:
            self._unsent.append(data)
        elif not self.down.write(data) and not self.paused:
            self._pause()
            self._write.restart(self.limits.write_s)

    def write_pieces(self, pieces: Iterable[bytes], *, end: bool = False) -> None:
        """Write these, slice by slice as fast as the client reads; after them, the end of the body."""
        waits = bool(self._unsent)
        self._unsent.extend(filter(None, pieces))
        self._ending = end
        if not waits:
            self._send_on()

    def lost(self, error: UpstreamError) -> None:
        """Before the client saw anything: the error, to be tried elsewhere. After: cut the client's answer too."""
        if not self.down.shown:
            self.fail(error)
            return
        shown = StreamBroken(error.message, code=error.code, reason=error.reason)
        shown.started = True
        shown.__cause__ = error
        # First: the client's connection ends with the abort, and that cancels whoever still waits for this exchange.
        self.fail(shown)
        try:
            if not self.down.closed and not self._unsent:  # else it would be in the middle of an event
                self.last_words(shown)
        finally:
            self.down.cut_off()

    def last_words(self, error: StreamBroken) -> None:
        """Tell the client in band, where the format has a way to."""

    def gone(self) -> None:
        """The client left: nobody is there to read the rest."""
        self.fail(ClientClosed("the client closed the connection"))

    def _send_on(self) -> None:
        sent = 0
        while self._unsent and not self.over:
            if self.down.closed:
                self.gone()
                return
            if sent >= _TURN:
                self._pause()
                asyncio.get_running_loop().call_soon(self._send_on)
                return
            data = self._next_slice()
            sent += len(data)
            if self._ending and not self._unsent:
                self.down.end(data)
                self.complete()
            elif not self.down.write(data):
                self._pause()
                self._write.restart(self.limits.write_s)
                return
        self._go_on()

    def _next_slice(self) -> bytes:
        first, at = self._unsent[0], self._at
        if at + SLICE < len(first):
            self._at += SLICE
            return first[at : at + SLICE]
        self._unsent.popleft()
        self._at = 0
        return first[at:] if at else first

    def _pause(self) -> None:
        if not self.paused:
            self.paused = True
            if self.connection is not None:
                self.connection.pause()

    def _drained(self) -> None:
        self._write.cancel()
        if self._unsent:
            self._send_on()
        else:
            self._go_on()

    def _go_on(self) -> None:
        if self.paused and not self.over:
            self.paused = False
            self.alive(self.meter.clock())
            if self.connection is not None:
                self.connection.resume()

    def _write_late(self) -> None:
        self.fail(ClientClosed(f"the client read nothing for {self.limits.write_s:g} s (limit: write)"))
        self.down.abort()

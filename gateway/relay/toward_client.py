"""The half of an exchange that writes to a client: backpressure, the write limit, and how it ends after a start."""

from __future__ import annotations

from gateway.errors import ClientClosed, StreamBroken, UpstreamError
from gateway.relay.call import Call
from gateway.relay.downstream import Downstream
from gateway.relay.exchange import Exchange
from gateway.relay.limits import Limits
from gateway.relay.meter import Meter
from gateway.relay.upstream import Pool
from gateway.relay.wheel import TimerWheel

__all__ = ["ClientExchange"]


class ClientExchange(Exchange):
    """Holds at most the client's high-water mark plus one read: over it, the engine is not read."""

    def __init__(
        self, pool: Pool, call: Call, down: Downstream, meter: Meter, limits: Limits, wheel: TimerWheel
    ) -> None:
        super().__init__(pool, call, meter, limits, wheel)
        self.down = down
        self._write = wheel.start(float("inf"), self._write_late)

    async def run(self) -> None:
        """As `Exchange.run`; the client's drain callback is ours for that long."""
        self.down.on_drain = self._drained
        try:
            await super().run()
        finally:
            self._write.cancel()
            self.down.on_drain = None

    def write(self, data: bytes) -> None:
        """One write to the client; stops reading the engine when the client is slow."""
        if not self.down.write(data) and not self.paused:
            self.paused = True
            self._write.restart(self.limits.write_s)
            if self.connection is not None:
                self.connection.pause()

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
            if not self.down.closed:
                self.last_words(shown)
        finally:
            self.down.cut_off()

    def last_words(self, error: StreamBroken) -> None:
        """Tell the client in band, where the format has a way to."""

    def gone(self) -> None:
        """The client left: nobody is there to read the rest."""
        self.fail(ClientClosed("the client closed the connection"))

    def _drained(self) -> None:
        if self.paused and not self.over:
            self.paused = False
            self._write.cancel()
            self.alive(self.meter.clock())
            if self.connection is not None:
                self.connection.resume()

    def _write_late(self) -> None:
        self.fail(ClientClosed(f"the client read nothing for {self.limits.write_s:g} s (limit: write)"))
        self.down.abort()

"""A big answer in pieces, unread: embeddings of tens of megabytes never stand in memory whole."""

from __future__ import annotations

from gateway.relay.call import Call
from gateway.relay.downstream import Downstream
from gateway.relay.headers import content_length, end_to_end
from gateway.relay.limits import Limits
from gateway.relay.meter import Meter
from gateway.relay.toward_client import ClientExchange
from gateway.relay.upstream import Pool
from gateway.relay.wheel import TimerWheel

__all__ = ["relay_bytes"]


async def relay_bytes(
    pool: Pool, call: Call, down: Downstream, meter: Meter, limits: Limits, wheel: TimerWheel
) -> None:
    """Send `call` and relay its answer byte for byte, with backpressure; returns when all of it has been written.

    Until the first body byte nothing is shown and failures are raised as they are (ConnectFailed, TimedOut, BadStatus,
    StreamBroken). Later the client's connection is cut short of the promised length and StreamBroken is raised with
    `started` true: JSON has no place for an error in the middle. Raises ClientClosed as `relay_stream` does.
    """
    await _BytesExchange(pool, call, down, meter, limits, wheel).run()


class _BytesExchange(ClientExchange):
    def due(self, status: int) -> bool:
        return 200 <= status < 300

    def body(self, data: bytes) -> None:
        if self.down.closed:
            self.gone()
            return
        self.first_came(self.meter.clock())
        self._begin()
        self.write(data)

    def finish(self) -> None:
        self._begin()
        self.down.end()
        self.complete()

    def _begin(self) -> None:
        if not self.down.started:
            self.down.shown = True
            self.down.start(self.status, end_to_end(self.headers), content_length(self.headers))

"""A big answer in pieces: embeddings of tens of megabytes never stand in memory whole."""

from __future__ import annotations

from gateway.errors import StreamBroken
from gateway.relay.call import Call
from gateway.relay.downstream import Downstream
from gateway.relay.headers import content_length, end_to_end, first
from gateway.relay.inflating import Inflater, inflater_for
from gateway.relay.limits import Limits
from gateway.relay.meter import Meter
from gateway.relay.sink import Headers
from gateway.relay.toward_client import ClientExchange
from gateway.relay.upstream import Pool
from gateway.relay.wheel import TimerWheel
from gateway.wire.top_level import TopLevel

__all__ = ["relay_bytes"]


async def relay_bytes(
    pool: Pool,
    call: Call,
    down: Downstream,
    meter: Meter,
    limits: Limits,
    wheel: TimerWheel,
    passing: TopLevel | None = None,
    *,
    json: bool = False,
) -> None:
    """Send `call` and relay its answer as it comes, with backpressure; returns when all of it has been written.

    A JSON answer goes through `passing`; everything else byte for byte. A page for people is no answer, nor is anything
    else than JSON with `json`. Until the first body byte nothing is shown and
    failures are raised as they are (ConnectFailed, TimedOut, BadStatus, StreamBroken). Later the client's connection is
    cut short of the body's end and StreamBroken is raised with `started` true: JSON has no place for an error in the
    middle. Raises ClientClosed as `relay_stream` does.
    """
    await _BytesExchange(pool, call, down, meter, limits, wheel, passing, json).run()


class _BytesExchange(ClientExchange):
    def __init__(
        self,
        pool: Pool,
        call: Call,
        down: Downstream,
        meter: Meter,
        limits: Limits,
        wheel: TimerWheel,
        passing: TopLevel | None,
        json: bool,
    ) -> None:
        super().__init__(pool, call, down, meter, limits, wheel)
        self._offered = passing
        self._json = json
        self._passing: TopLevel | None = None
        self._inflater: Inflater | None = None

    def head(self, status: int, headers: Headers) -> None:
        super().head(status, headers)
        kind = (first(headers, "content-type") or "").lower()
        if self.due(status) and (kind.startswith("text/html") or (self._json and kind and "json" not in kind)):
            self.fail(StreamBroken("the engine answered with something that is no answer"))
            return
        if not self.due(status) or not kind.startswith("application/json"):
            return
        try:
            self._inflater = inflater_for(headers)
        except StreamBroken as error:
            self.fail(error)
        self._passing = self._offered

    def due(self, status: int) -> bool:
        return 200 <= status < 300

    def body(self, data: bytes) -> None:
        if self.down.closed:
            self.gone()
            return
        self.first_came(self.meter.clock())
        if self._inflater is not None:
            data = self._inflater.feed(data)
        if self._passing is not None:
            data = self._passing.feed(data)
        if data:
            self._begin()
            self.write(data)

    def finish(self) -> None:
        self._begin()
        self.down.end()
        self.complete()

    def _begin(self) -> None:
        if self.down.started:
            return
        self.down.shown = True
        plain = end_to_end(self.headers)
        length = content_length(self.headers)
        if self._passing is not None:
            length = None
            plain = [pair for pair in plain if pair[0] != "content-encoding"]
        self.down.start(self.status, plain, length)

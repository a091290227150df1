"""An answer for a client that did not ask for a stream, read to its end before anything is shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gateway.errors import StreamBroken
from gateway.relay.call import Call
from gateway.relay.downstream import Downstream
from gateway.relay.exchange import Exchange
from gateway.relay.headers import end_to_end, first
from gateway.relay.inflating import Inflater, inflater_for
from gateway.relay.limits import Hooks, Limits
from gateway.relay.meter import Meter
from gateway.relay.refusal import in_stream
from gateway.relay.sink import Headers
from gateway.relay.upstream import Pool
from gateway.relay.wheel import TimerWheel
from gateway.wire.chat_stream import ChatStream
from gateway.wire.dialect import EVENT_STREAM, NDJSON
from gateway.wire.formats import EventAssembler
from gateway.wire.sse import Framer
from gateway.wire.stream_view import EventKind, StreamView
from gateway.wire.translated_stream import Framing

__all__ = ["Whole", "relay_whole", "show_whole"]


@dataclass(frozen=True, slots=True)
class Whole:
    """A complete answer; its header fields are those that may be passed on, without the length."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = field(repr=False)


async def relay_whole(
    pool: Pool,
    call: Call,
    limits: Limits,
    meter: Meter,
    wheel: TimerWheel,
    assembler: EventAssembler | None = None,
    view: StreamView | None = None,
    hooks: Hooks = Hooks(),  # noqa: B008 - frozen
    *,
    stream: bool = True,
    framing: Framing | None = None,
) -> Whole:
    """Send `call` and collect its answer, at most `limits.answer_bytes` of it.

    With an assembler the engine streams (so that cancelling takes effect at once, and tokens can be timed) and the
    answer is assembled; `view` then watches the events as in `relay_stream`. An answer of another kind than an event
    stream is taken as it is. `stream` false: no stream was asked for, and only what says that it is one is assembled.
    Nothing was shown to anybody when it raises ConnectFailed, TimedOut, BadStatus (also for an error event) or
    StreamBroken (cut, without a terminal event, or over the limit).
    """
    if assembler is None:
        collected = _Collected(pool, call, meter, limits, wheel)
        await collected.run()
        return collected.whole()
    view = view or ChatStream("chat")
    assembled = _Assembled(pool, call, meter, limits, wheel, assembler, view, hooks, stream, framing or Framer())
    await assembled.run()
    return assembled.whole()


def show_whole(down: Downstream, whole: Whole, body: bytes) -> None:
    """Answer a client with this body, and what of the engine's header fields goes with it."""
    headers = [pair for pair in whole.headers if pair[0] != "content-type"]
    down.start(whole.status, [*headers, ("content-type", "application/json")], len(body))
    down.shown = True
    down.end(body)


class _Collected(Exchange):
    """A body, unpacked if the engine compressed it although it was asked not to."""

    def __init__(self, pool: Pool, call: Call, meter: Meter, limits: Limits, wheel: TimerWheel) -> None:
        super().__init__(pool, call, meter, limits, wheel)
        self._pieces: list[bytes] = []
        self._size = 0
        self._inflater: Inflater | None = None

    def head(self, status: int, headers: Headers) -> None:
        super().head(status, headers)
        try:
            self._inflater = inflater_for(headers)
        except StreamBroken as error:
            self.fail(error)

    def body(self, data: bytes) -> None:
        self.more_came(self.meter.clock())
        plain = self._inflated(data)
        if plain is None:
            return
        data = plain
        self._size += len(data)
        if self._size > self.limits.answer_bytes:
            self.fail(StreamBroken(f"the engine's answer is longer than {self.limits.answer_bytes} bytes"))
            return
        self._pieces.append(data)

    def _inflated(self, data: bytes) -> bytes | None:
        if self._inflater is None:
            return data
        try:
            return self._inflater.feed(data, self.limits.answer_bytes - self._size)
        except StreamBroken as error:
            self.fail(error)
            return None

    def finish(self) -> None:
        if self._inflater is not None and not self._inflater.whole:
            self.fail(StreamBroken("the engine's answer is compressed and damaged"))
            return
        self.complete()

    def whole(self) -> Whole:
        """The answer, after `run`."""
        kept = [pair for pair in end_to_end(self.headers) if pair[0] != "content-encoding"]
        return Whole(self.status, kept, b"".join(self._pieces))


class _Assembled(_Collected):
    """An event stream on its way to becoming one JSON answer."""

    def __init__(
        self,
        pool: Pool,
        call: Call,
        meter: Meter,
        limits: Limits,
        wheel: TimerWheel,
        assembler: EventAssembler,
        view: StreamView,
        hooks: Hooks,
        stream: bool,
        framing: Framing,
    ) -> None:
        super().__init__(pool, call, meter, limits, wheel)
        self._asked = stream
        self._assembler = assembler
        self._view = view
        self._hooks = hooks
        self._framer = framing
        self._streams = True

    def head(self, status: int, headers: Headers) -> None:
        super().head(status, headers)
        kind = (first(headers, "content-type") or "").lower()
        self._streams = (
            not kind.startswith("application/json") if self._asked else kind.startswith((EVENT_STREAM, NDJSON))
        )

    def body(self, data: bytes) -> None:
        if not self._streams:
            super().body(data)
            return
        plain = self._inflated(data)
        if plain is None:
            return
        self._size += len(plain)
        if self._size > self.limits.answer_bytes:
            self.fail(StreamBroken(f"the engine's answer is longer than {self.limits.answer_bytes} bytes"))
            return
        self._take(self._framer.feed(plain))

    def finish(self) -> None:
        if not self._streams:
            super().finish()
            return
        self._take(self._framer.end())
        if self.over:
            return
        if self._view.terminal:
            self.complete()
            return
        error = self._view.unfinished(self._framer.tail)
        if error is not None:
            self._engine_error(error)
        else:
            self.fail(StreamBroken("the engine's answer ended before its terminal event"))

    def whole(self) -> Whole:
        if not self._streams:
            return super().whole()
        kept = [pair for pair in end_to_end(self.headers) if pair[0] not in ("content-type", "cache-control")]
        return Whole(200, [("content-type", "application/json"), *kept], self._assembler.result())

    def _take(self, events: list[bytes]) -> None:
        tokens = 0
        alive = False
        for event in events:
            seen = self._view.see(event)
            if seen.kind is EventKind.ERROR:
                self._engine_error(seen.error or {})
                return
            if seen.kind is EventKind.COMMENT:
                continue
            alive = True
            tokens += seen.token
            self._assembler.feed(event)
        if not alive:
            return
        now = self.meter.clock()
        if tokens:
            self.meter.token(now, tokens)
            if self.meter.tokens == tokens:
                self.first_came(now)
                self._hooks.first_token()
        self.alive(now)

    def _engine_error(self, error: dict[str, Any]) -> None:
        self.fail(in_stream(error))

"""An answer for a client that did not ask for a stream, read to its end before anything is shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from gateway.apart import LIGHT_BYTES
from gateway.core.memory import LARGE, Hold
from gateway.errors import AnswerTooLarge, NoRoom, StreamBroken
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
    """A complete answer; its header fields are those that may be passed on, without the length.

    `events`: the body is a long stream that is yet to be put together.
    """

    status: int
    headers: list[tuple[str, str]]
    body: bytes = field(repr=False)
    events: bool = False


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
    hold: Hold | None = None,
) -> Whole:
    """Send `call` and collect its answer, at most `limits.answer_bytes` of it.

    With an assembler the engine streams (so that cancelling takes effect at once, and tokens can be timed) and the
    answer is assembled; `view` then watches the events as in `relay_stream`. An answer of another kind than an event
    stream is taken as it is. `stream` false: no stream was asked for, and only what says that it is one is assembled.
    A long stream comes back as it is, to be put together elsewhere. `hold` is charged for what is collected.
    Nothing was shown to anybody when it raises ConnectFailed, TimedOut, BadStatus (also for an error event),
    StreamBroken (cut, or without a terminal event), AnswerTooLarge or NoRoom.
    """
    hold = hold if hold is not None else Hold()
    if assembler is None:
        collected = _Collected(pool, call, meter, limits, wheel, hold)
        await collected.run()
        return collected.whole()
    view = view or ChatStream("chat")
    assembled = _Assembled(pool, call, meter, limits, wheel, hold, assembler, view, hooks, stream, framing or Framer())
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

    def __init__(self, pool: Pool, call: Call, meter: Meter, limits: Limits, wheel: TimerWheel, hold: Hold) -> None:
        super().__init__(pool, call, meter, limits, wheel)
        self._hold = hold
        self._held = BytesIO()  # it grows in place where memory is mapped, and gives what it holds without a copy
        self._size = self._charged = 0
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
        self._keep(plain)

    def _keep(self, data: bytes) -> bool:
        """Hold this, too; False when that was too much."""
        most = self.limits.answer_bytes
        self._size += len(data)
        if self._size > most:
            what = f"the answer is longer than the {most} bytes that are held of one (server.limits.answer)"
            self.fail(AnswerTooLarge(f"{what}; ask for a stream, or for less"))
            return False
        if self._size > self._charged:
            # In steps: a short answer for what it may come to, a large one ahead of it.
            self._charged = min(self._size + LARGE if self._size > LARGE else min(2 * self._size, LARGE), most)
            if not self._hold.takes(answer=self._charged):
                self.fail(NoRoom())
                return False
        self._held.write(data)
        return True

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
        return Whole(self.status, kept, self._taken())

    def _taken(self) -> bytes:
        body = self._held.getvalue()
        self._held = BytesIO()
        return body


class _Assembled(_Collected):
    """An event stream on its way to becoming one JSON answer."""

    def __init__(
        self,
        pool: Pool,
        call: Call,
        meter: Meter,
        limits: Limits,
        wheel: TimerWheel,
        hold: Hold,
        assembler: EventAssembler,
        view: StreamView,
        hooks: Hooks,
        stream: bool,
        framing: Framing,
    ) -> None:
        super().__init__(pool, call, meter, limits, wheel, hold)
        self._asked = stream
        self._assembler: EventAssembler | None = assembler  # while it is short
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
        if not self._keep(plain):
            return
        if self._size > LIGHT_BYTES:
            self._assembler = None
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
        fields = [("content-type", "application/json"), *kept]
        if self._assembler is None:
            return Whole(200, fields, self._taken(), events=True)
        return Whole(200, fields, self._assembler.result())

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
            if self._assembler is not None:
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

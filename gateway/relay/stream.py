"""An event stream from an engine to a client, as it comes.

One read from the engine is framed into events, every event is looked at once, and what the client gets of them is
written in one piece, all inside the transport's read callback.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gateway.core.memory import Hold
from gateway.errors import BadStatus, StreamBroken, UpstreamError
from gateway.relay.call import Call
from gateway.relay.downstream import Downstream
from gateway.relay.headers import first, stream_headers
from gateway.relay.inflating import Inflater, inflater_for
from gateway.relay.keeping import Keeping
from gateway.relay.limits import Hooks, Limits
from gateway.relay.meter import Meter
from gateway.relay.refusal import in_stream, status_of
from gateway.relay.sink import Headers
from gateway.relay.toward_client import SLICE, ClientExchange
from gateway.relay.upstream import Pool
from gateway.relay.wheel import TimerWheel
from gateway.wire.error_body import upstream_error
from gateway.wire.one_character import one_character
from gateway.wire.scrub import scrubbed
from gateway.wire.so_far import SoFar
from gateway.wire.sse import Framer
from gateway.wire.stream_view import EventKind, StreamView
from gateway.wire.translated_stream import Framing

__all__ = ["relay_stream", "tell_broken"]

_PROGRESS_EVERY = 64  # token events between two calls of Hooks.progress
_ALIKE = 4  # looks at every 64th token that found the same one character: 256 tokens of it are no answer
_AFTER_DONE_S = 0.25  # an engine that has sent its terminal event has this long to end its body
_HELD_LIMIT = 64 << 10  # bytes of comments and role chunks held back before the first token
_TOKEN, _COMMENT, _ROLE, _FINISH = EventKind.TOKEN, EventKind.COMMENT, EventKind.ROLE, EventKind.FINISH
_DONE, _ERROR = EventKind.DONE, EventKind.ERROR


async def relay_stream(
    pool: Pool,
    call: Call,
    down: Downstream,
    view: StreamView,
    meter: Meter,
    limits: Limits,
    wheel: TimerWheel,
    hooks: Hooks = Hooks(),  # noqa: B008 - frozen
    framing: Framing | None = None,
    hold: Hold | None = None,
    so_far: SoFar | None = None,
) -> None:
    """Send `call` and relay the event stream that answers it; returns when the client has been given all of it.

    The status line is held back until the first token (or a keepalive) is due. Up to the first token an engine's
    failure shows the client nothing and is raised as it is: ConnectFailed, TimedOut, StreamBroken, or BadStatus with
    the engine's error in `payload`, also where that error was the first event of a 200. Later the client gets an error
    event and a cut connection, and StreamBroken is raised with `started` true and the failure as its cause. The
    terminal event leaves in one write with the end of the body: many clients close as soon as they see it.
    What a translation keeps of the stream is charged to `hold`; over `limits.answer_bytes` of it, or without room,
    AnswerTooLarge and NoRoom end the stream in the same way.
    With `so_far`, a client that was shown text is told nothing of a failure: its stream stays open, and StreamBroken is
    raised with `unsaid` true, for another engine to go on or for `tell_broken`.
    The end of the body without a finish_reason or `[DONE]` is a failure. Raises ClientClosed when the client is gone
    or reads nothing for `limits.write_s` seconds. Cancelled, it closes the engine's connection at once.
    """
    await StreamExchange(
        pool, call, down, view, meter, limits, wheel, hooks, framing or Framer(), hold or Hold(), so_far
    ).run()


def tell_broken(down: Downstream, shown: StreamView, error: UpstreamError) -> None:
    """End a stream that broke off and goes on nowhere: an error event of its format, and a cut connection."""
    try:
        if not down.closed:
            down.write(shown.failure(error) or down.dialect.event(error))
    finally:
        down.cut_off()


class StreamExchange(ClientExchange):
    """The exchange of `relay_stream`."""

    def __init__(
        self,
        pool: Pool,
        call: Call,
        down: Downstream,
        view: StreamView,
        meter: Meter,
        limits: Limits,
        wheel: TimerWheel,
        hooks: Hooks,
        framing: Framing,
        hold: Hold,
        so_far: SoFar | None,
    ) -> None:
        super().__init__(pool, call, down, meter, limits, wheel)
        self._view = view
        self._keeping = Keeping(view, hold, limits.answer_bytes)
        self._hooks = hooks
        self._framer = framing
        self._so_far = so_far
        self._held: list[bytes] | None = None if down.shown else []  # None once the status line is out
        self._held_bytes = 0
        self._milestone = 1  # tokens at which a hook is called next
        self._looks = ("", 0)  # a character, and how many looks in a row found it alone
        self._engine_message = ""
        self._inflater: Inflater | None = None
        self._last = b""  # the terminal event: it leaves together with the end of the body
        self._keepalive = wheel.start(float("inf"), self._quiet)

    async def run(self) -> None:
        """As `ClientExchange.run`."""
        self._keepalive.restart(self.limits.keepalive_s)  # some engines send no head before the first token
        try:
            await super().run()
        finally:
            self._keepalive.close()

    def head(self, status: int, headers: Headers) -> None:
        """A JSON answer where a stream was asked for is read as an error answer."""
        super().head(status, headers)
        if not self.due(status):
            return
        kind = first(headers, "content-type") or ""
        try:
            self._inflater = inflater_for(headers)
        except StreamBroken as error:
            self.fail(error)
            return
        if kind.lower().startswith(("application/json", "text/html")):
            self.refuse()

    def body(self, data: bytes) -> None:
        """One read: frame, look, write."""
        if self.down.closed:
            self.gone()
            return
        if self._inflater is not None:
            data = self._inflater.feed(data)
        events = self._framer.feed(data)
        if events:
            self._pass_on(events)

    def finish(self) -> None:
        """End of the body: good only after a terminal event."""
        self._pass_on(self._framer.end())
        if self.over:
            return
        whole = self._view.terminal
        tail = self._framer.tail
        if tail and not whole:
            error = self._view.unfinished(tail)
            if error is not None:
                self._engine_error(error)
                return
        if whole:
            self._end_well()
        else:
            self.lost(StreamBroken("the engine's answer ended before its terminal event"))

    def lost(self, error: UpstreamError) -> None:
        """A cut after the terminal event took nothing from the client."""
        if self._held is None and self._view.terminal:
            self._end_well()
        else:
            self._breaks(error)

    def last_words(self, error: StreamBroken) -> None:
        """The error as an event of its own; an unfinished event before it was never sent on."""
        if self._engine_message:
            error = StreamBroken(self._engine_message, code=error.code, reason=error.reason)
        self.down.write(self._view.failure(error) or self.down.dialect.event(error))

    def refused(self, status: int, payload: bytes) -> BadStatus:
        """An error in a JSON answer with status 200 counts as the status that it names."""
        refusal = super().refused(status, payload)
        if status < 300:
            error = upstream_error(0, payload)
            refusal.status = 502 if error is None else status_of(error)
            refusal.message = "the engine answered a streamed request without a stream"
        return refusal

    # --- inside ---

    def _breaks(self, error: UpstreamError) -> None:
        """The client is told, unless the answer may go on elsewhere."""
        if self._so_far is None or not self.down.shown or self._unsent or self.down.closed:
            super().lost(error)
            return
        unsaid = StreamBroken(self._engine_message or error.message, code=error.code, reason=error.reason)
        unsaid.started = unsaid.unsaid = True
        unsaid.__cause__ = error
        self.fail(unsaid)

    def _pass_on(self, events: Sequence[bytes]) -> None:
        if self._so_far is not None:
            events = self._so_far.take(events)
        see = self._view.see
        out: list[bytes] = []
        tokens = 0
        alive = False  # something besides comments
        other = False  # something besides comments and role chunks
        ended = False  # a finish_reason or [DONE]
        long = False  # pieces that are not to be joined
        done = False
        for event in events:
            forward, kind, error, token, more = see(event)
            if token:
                tokens += 1
            if kind is not _TOKEN:
                if kind is _ERROR:
                    self._pass_error(out, error or {})
                    return
                if kind is _FINISH or kind is _DONE:
                    ended = True
                    if kind is _DONE:
                        self.shorten_gap(_AFTER_DONE_S)
                        done = True
                alive = alive or kind is not _COMMENT
                other = other or (kind is not _COMMENT and kind is not _ROLE)
            if forward:
                out.append(forward)
            if more:
                out += more
                long = True
        kept = self._keeping.grown()
        if kept is not None:
            self.lost(kept)
            return
        meter = self.meter
        now = meter.clock()
        if tokens:
            meter.token(now, tokens)
            self._gap.touch(now)
            if meter.tokens >= self._milestone:
                self._tell(now, events[-1])
        elif ended:
            self.first_came(now)  # maybe an answer without a token
        elif alive:
            self.alive(now)
        if done:
            self._last += b"".join(out)
        elif out:
            self._keepalive.touch(now)
            if self._held is None:
                if long:
                    self.write_pieces(out)
                else:
                    self.write(out[0] if len(out) == 1 else b"".join(out))
            else:
                self._hold(out, begin=tokens > 0 or other)

    def _tell(self, now: float, event: bytes) -> None:
        tokens = self.meter.tokens
        if self._milestone == 1:
            self.first_came(now)
            self._hooks.first_token()
        usage = self._view.usage
        if usage is not None:
            self._hooks.counted(usage)
        if tokens >= _PROGRESS_EVERY:
            self._hooks.progress(tokens)
            self._look_at(event)
        self._milestone = tokens - tokens % _PROGRESS_EVERY + _PROGRESS_EVERY

    def _look_at(self, event: bytes) -> None:
        """Once in a while: whether the answer is one character over and over."""
        (known, times), character = self._looks, one_character(event)
        self._looks = character, times + 1 if character and character == known else 1
        if character and self._looks[1] >= _ALIKE:
            self.meter.garbage = True

    def _hold(self, out: list[bytes], *, begin: bool) -> None:
        held = self._held
        if held is not None:
            held += out
            self._held_bytes += sum(map(len, out))
            if begin or self._held_bytes > _HELD_LIMIT:
                self._begin()

    def _begin(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._open()
            self.down.shown = True
            if held:
                self.write(b"".join(held))

    def _open(self) -> None:
        if not self.down.started:
            kind = self.down.dialect.stream_type
            self.down.start(200, stream_headers(self.headers, kind), None)

    def _pass_error(self, out: list[bytes], error: dict[str, Any]) -> None:
        if out and self._held is None:
            self.write(out[0] if len(out) == 1 else b"".join(out))
        self._engine_error(error)

    def _engine_error(self, error: dict[str, Any]) -> None:
        self._engine_message = scrubbed(str(error.get("message") or ""))
        self._breaks(in_stream(error))

    def _end_well(self) -> None:
        if self._ending:
            return
        try:
            pieces = self._keeping.closing()
            last = self._last + (b"" if pieces else self._view.closing())
        except StreamBroken as error:
            super().lost(error)
            return
        held, self._held = self._held or [], None
        self._open()
        self.down.shown = True
        if self._unsent or sum(map(len, pieces)) > SLICE:
            self._let_go()
            self.write_pieces((*held, last, *pieces), end=True)
            return
        self.down.end(b"".join((*held, last, *pieces)))
        self.complete()

    def _let_go(self) -> None:
        # The engine has done its part; only the client is still to be waited for.
        self._first.cancel()
        self._gap.cancel()
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.release(self)

    def _quiet(self) -> None:
        if self.down.closed:
            self.gone()
            return
        if not self.paused and not self._view.terminal:
            self._open()
            self.write(self.down.dialect.keepalive)
        self._keepalive.restart()

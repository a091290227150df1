"""A stream in the engine's dialect, watched as such and written in the client's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from gateway.errors import GatewayError, StreamBroken
from gateway.wire.gave_up import require_an_end
from gateway.wire.halves import Halves
from gateway.wire.sse import data_of
from gateway.wire.stream_view import EventKind, Seen, StreamView
from gateway.wire.translation import GrowingWriter, StreamWriter
from gateway.wire.usage import Usage

__all__ = ["Framing", "TranslatedStream"]

_JOINED = 64 * 1024
"""Bytes up to which pieces are joined."""
_NOTHING = (b"[DONE]", b"null", b"")


class Framing(Protocol):
    """Cuts a body into events; `gateway.wire.sse.Framer` is one."""

    @property
    def tail(self) -> bytes:
        """What came after the last whole event."""

    def feed(self, data: bytes) -> list[bytes]:
        """The events that `data` completes. Raises StreamBroken over the limit of one event."""

    def end(self) -> list[bytes]:
        """The events that the end of the body completes."""


@runtime_checkable
class _Failing(Protocol):
    """A writer whose events are numbered."""

    def failure(self, error: GatewayError) -> bytes:
        """The error as the events that come next."""


class TranslatedStream:
    """`inner` watches what the engine sends, `writer` makes the client's events of it.

    `framing` cuts what `inner` forwards into events, `data` takes the JSON out of one. Where `inner` is a translation
    itself, two of them stand in a row.
    """

    __slots__ = ("_data", "_framing", "_growing", "_halves", "_inner", "_writer")

    def __init__(
        self,
        inner: StreamView,
        writer: StreamWriter,
        framing: Framing,
        data: Callable[[bytes], bytes | None] = data_of,
    ) -> None:
        self._inner = inner
        self._writer = writer
        self._growing = writer if isinstance(writer, GrowingWriter) else None
        self._framing = framing
        self._data = data
        self._halves = Halves()

    @property
    def tokens_seen(self) -> int:
        """Events with generated text so far."""
        return self._inner.tokens_seen

    @property
    def finish_reason(self) -> str | None:
        """Why the answer ended, in the words of chat completions."""
        return self._inner.finish_reason

    @property
    def usage(self) -> Usage | None:
        """What the engine told."""
        return self._inner.usage

    @property
    def terminal(self) -> bool:
        """The engine's answer is whole."""
        return self._inner.terminal

    def see(self, event: bytes) -> Seen:
        """Look at one event of the engine's; `forward` is the client's, or nothing. Comments are not passed on."""
        seen = self._inner.see(event)
        if seen.kind is EventKind.COMMENT or seen.kind is EventKind.ERROR or not seen.forward:
            return seen if not seen.forward else Seen(b"", seen.kind)
        try:
            written = self._write(seen.forward)
        except StreamBroken as error:
            return Seen(b"", EventKind.ERROR, {"message": error.message, "type": "upstream_error", "code": 502})
        if len(written) > 1 and sum(map(len, written)) > _JOINED:
            return Seen(b"", seen.kind, None, seen.token, tuple(written))
        return Seen(written[0] if len(written) == 1 else b"".join(written), seen.kind, None, seen.token)

    def unfinished(self, tail: bytes) -> dict[str, Any] | None:
        """As of the engine's stream."""
        return self._inner.unfinished(tail)

    def closing(self) -> bytes:
        """`closing_pieces` in one."""
        return b"".join(self.closing_pieces())

    @property
    def held(self) -> int:
        """Bytes that the writer keeps of the answer."""
        return self._growing.held if self._growing is not None else 0

    def closing_pieces(self) -> list[bytes]:
        """The client's final events. Raises StreamBroken when the engine's answer was none after all."""
        require_an_end(self._inner.finish_reason)
        last = self._inner.closing()
        written = self._write(last) if last else []
        return written + (self._growing.end_pieces() if self._growing is not None else [self._writer.end()])

    def failure(self, error: GatewayError) -> bytes | None:
        """As the client's dialect tells it there, if its events go on from one another."""
        return self._writer.failure(error) if isinstance(self._writer, _Failing) else None

    def _write(self, forwarded: bytes) -> list[bytes]:
        out: list[bytes] = []
        for event in self._framing.feed(forwarded):
            data = self._data(event)
            if data is not None and data.strip() not in _NOTHING:
                data = self._halves.joined(data)
                if self._growing is not None:
                    out += self._growing.feed_pieces(data)
                else:
                    out.append(self._writer.feed(data))
        return out

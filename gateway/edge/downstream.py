"""The client's side of an answer: bytes straight to the client's transport, framed here, bounded, nothing awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from gateway.edge.head import Headers, bodyless, is_stream, response_head
from gateway.wire.dialect import OPENAI, Dialect

if TYPE_CHECKING:
    from gateway.edge.connection import EdgeProtocol

__all__ = ["ABORT_LINGER_S", "ClientDownstream"]

ABORT_LINGER_S = 5.0
"""Seconds that the last bytes before a cut may take to leave; then the connection is reset."""

_JOIN_BELOW = 65_536
"""Bytes up to which copying a chunk next to its frame costs less than a second buffer in the kernel call."""


class ClientDownstream:
    """One answer on one client connection. Implements `gateway.relay.downstream.Downstream`.

    The head leaves with the first body bytes, or at the end of this turn of the loop if there are none by then. Without
    a length an HTTP/1.1 body is chunked and an HTTP/1.0 body ends with the connection. `fields` are added to
    every head. `reusable` is asked when the head is written: False ends the connection with this answer (an unread body
    is in the way).
    """

    __slots__ = (
        "_chunked",
        "_fields",
        "_head",
        "_head_only",
        "_http11",
        "_length",
        "_protocol",
        "_reusable",
        "_started",
        "_transport",
        "body_bytes",
        "cut",
        "dialect",
        "ended",
        "event_stream",
        "extra",
        "keep_alive",
        "lost",
        "on_drain",
        "shown",
        "status",
    )

    def __init__(
        self,
        protocol: EdgeProtocol,
        *,
        head_only: bool = False,
        http11: bool = True,
        keep_alive: bool = True,
        fields: tuple[tuple[str, str], ...] = (),
        reusable: Callable[[], bool] | None = None,
    ) -> None:
        self._protocol = protocol
        self._transport: asyncio.Transport | None = protocol.transport
        self._head_only = head_only
        self._http11 = http11
        self._head: bytes = b""
        self._started = False
        self._chunked = False
        self._length: int | None = None
        self._reusable = reusable
        self.keep_alive = keep_alive
        self._fields = fields
        self.extra: tuple[tuple[str, str], ...] = ()
        """Further fields for the head, whoever begins the answer; they win over those that the answer brings."""
        self.on_drain: Callable[[], None] | None = None
        self.status: int = 0
        """What the client was told; 0 before that."""
        self.body_bytes = 0
        self.ended = False
        """The body was finished, or was cut off for good."""
        self.cut = False
        """The answer was ended without its body's end."""
        self.lost = False
        """The connection is gone; set by the protocol."""
        self.event_stream = False
        self.dialect: Dialect = OPENAI
        """How this client is told of errors and kept waiting; the route decides."""
        self.shown = False
        """Set by the relay: some of an answer was sent, and not just the status line and keepalives."""

    @property
    def started(self) -> bool:
        """Whether the status line is out, or will be in this turn of the loop."""
        return self._started

    @property
    def closed(self) -> bool:
        """Whether writing is pointless: the client is gone or the answer was cut."""
        return self.lost or self._transport is None or self._transport.is_closing()

    def start(self, status: int, headers: Headers, length: int | None) -> None:
        """Begin the answer. `length` in bytes where the body's is known. RuntimeError when it has already begun."""
        if self._started:
            raise RuntimeError("the answer has already begun")
        self._started = True
        self.status = status
        if bodyless(status):
            self._head_only, length = True, None
        elif length is None and self._http11:
            self._chunked = True
        elif length is None:
            self.keep_alive = False
        if self._reusable is not None and not self._reusable():
            self.keep_alive = False
        ours = (*self._fields, *self.extra)
        names = {name.lower() for name, _ in ours}
        fields = [*(field for field in headers if field[0].lower() not in names), *ours]
        self.event_stream = any(k.lower() == "content-type" and is_stream(v) for k, v in fields)
        self._length = None if self._head_only else length
        self._head = response_head(
            status, fields, length=length, chunked=self._chunked, keep_alive=self.keep_alive, http11=self._http11
        )
        asyncio.get_running_loop().call_soon(self._flush_head)

    def _flush_head(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._send(head)

    def _send(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def write(self, data: bytes) -> bool:
        """Send body bytes in one write.

        False: over the high-water mark, so write no more until `on_drain`; or nobody is there any more. RuntimeError
        when the answer has ended or the body outgrows its declared length.
        """
        transport = self._transport
        if self.lost or transport is None:
            return False
        if transport.is_closing():
            # The peer half-closed with bytes of ours unread; it is not coming back for them.
            transport.abort()
            return False
        if self.ended:
            raise RuntimeError("the answer has ended")
        size = len(data)
        if size and not self._head_only:
            self.body_bytes += size
            if self._length is not None and self.body_bytes > self._length:
                self.abort()
                raise RuntimeError("body is longer than its declared length")
            head, self._head = self._head, b""
            if not self._chunked and size >= _JOIN_BELOW:
                transport.writelines((head, data))
            elif not self._chunked:
                transport.write(head + data if head else data)
            elif size < _JOIN_BELOW:
                transport.write(b"%b%x\r\n%b\r\n" % (head, size, data))
            else:
                transport.writelines((b"%b%x\r\n" % (head, size), data, b"\r\n"))
        return not self._protocol.writing_paused

    def end(self, data: bytes = b"") -> None:
        """Finish the answer, `data` its last bytes in the same write; the connection may serve another.

        A body short of its declared length is cut instead.
        """
        if (
            0 < len(data) < _JOIN_BELOW
            and self._chunked
            and self._started
            and not (self.ended or self.closed or self._head_only)
        ):
            head, self._head = self._head, b""
            self.body_bytes += len(data)
            self.ended = True
            self.on_drain = None
            self._send(b"%b%x\r\n%b\r\n0\r\n\r\n" % (head, len(data), data))
            return
        if data:
            self.write(data)
        if self.ended or not self._started:
            if not self._started:
                self.abort()
            return
        if self._length is not None and self.body_bytes < self._length:
            self.abort()
            return
        self.ended = True
        self.on_drain = None
        head, self._head = self._head, b""
        if self._chunked and not self._head_only:
            self._send(head + b"0\r\n\r\n")
        elif head:
            self._send(head)

    def cut_off(self) -> None:
        """End after an error was told in the stream: as `abort`, or properly where the dialect wants it so."""
        if self.dialect.cut or not self.event_stream or self._protocol.writing_paused:
            self.abort()
            return
        self.cut = True
        self.keep_alive = False
        self.end()
        self.abort()

    def abort(self) -> None:
        """Close without the end of the body, so that the client's parser sees a cut.

        Bytes under the high-water mark still go out first, within `ABORT_LINGER_S`; over it they are dropped.
        """
        self.cut = self.cut or not self.ended
        self.ended = True
        self.keep_alive = False
        self.on_drain = None
        transport = self._transport
        if self.lost or transport is None:
            return
        if self._protocol.writing_paused:
            transport.abort()
            return
        self._flush_head()
        if not transport.is_closing():
            transport.close()
        self._protocol.reset_after(ABORT_LINGER_S)

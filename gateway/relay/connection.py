"""One connection to an engine: bytes in, calls on a sink out; no coroutine runs while an answer streams."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from gateway.errors import StreamBroken, UpstreamError
from gateway.relay.response import ResponseReader
from gateway.relay.sink import Sink

if TYPE_CHECKING:
    from gateway.relay.upstream import Pool
    from gateway.relay.wheel import Timer

__all__ = ["Connection", "Stale"]

_SLICE = 128 << 10  # bytes of a request body handed to the transport at a time
_STALE_WITHIN_S = 1.0
_FULL_READ = 64 << 10
"""Bytes of a read that are taken in one turn of the loop. uvloop reads 256 KiB, up to 32 times, before anybody else has
a turn, and that many short events take half a second; 64 KiB of them take some 10 ms."""
# Find a peer that went away without a word (power cut, cable): after 30 s of silence, 3 probes 10 s apart.
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


class Stale(UpstreamError):
    """A kept connection died under a request before a byte of the answer: the engine was closing it as we wrote.

    Only a loss within a second of sending counts as that race; an engine that dies later had the request.
    """


class Connection(asyncio.Protocol):
    """Owned by its pool; lent to one sink from `send` until `end`, `broken` or `release`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._sink: Sink | None = None
        self._reader = ResponseReader()
        self._answered = self._head_told = False
        self._unsent: deque[memoryview] | None = None
        self._write_paused = self._reading_paused = False
        self._backlog = b""  # of a long read, for the next turns
        self._sent_at = 0.0
        self.exchanges = 0
        self.idle_timer: Timer | None = None

    # --- for whoever holds the exchange ---

    def send(self, head: bytes, body: Sequence[bytes | memoryview], sink: Sink) -> None:
        """Write a request and give `sink` the answer. A big body goes out in slices, as the engine takes it."""
        self._sink = sink
        self._reader.next()
        self._answered = self._head_told = False
        self.exchanges += 1
        self._sent_at = self._pool.wheel.clock()
        if sum(map(len, body)) <= _SLICE:
            self._write(b"".join((head, *body)))
        else:
            self._write(head)
            self._unsent = deque(memoryview(piece) for piece in body)
            self._push()

    def pause(self) -> None:
        """Read no more from the engine; its kernel buffers, and then its own writes, fill up."""
        if not self._reading_paused and self._transport is not None and not self._transport.is_closing():
            self._reading_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read again."""
        if self._reading_paused and self._transport is not None:
            self._reading_paused = False
            if self._backlog:
                asyncio.get_running_loop().call_soon(self._read_on)
            elif not self._transport.is_closing():
                self._transport.resume_reading()

    def release(self, sink: Sink) -> None:
        """`sink` wants nothing more: if its exchange is unfinished the socket is closed at once, never drained."""
        if self._sink is sink:
            self._sink = None
            self.abort()

    def abort(self) -> None:
        """Close the socket now and drop what is buffered."""
        self._unsent = None
        self._backlog = b""
        self._pool.lost(self)
        if self._transport is not None:
            self._transport.abort()

    def cut(self, why: str) -> None:
        """Close the socket now and tell the sink, if there is one, with StreamBroken."""
        sink, self._sink = self._sink, None
        self.abort()
        if sink is not None:
            sink.broken(StreamBroken(why))

    def usable(self) -> bool:
        """Whether it may carry another request."""
        return self._transport is not None and not self._transport.is_closing()

    # --- asyncio.Protocol ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the transport and turn on TCP keepalive."""
        self._transport = cast(asyncio.Transport, transport)
        self._pool.made(self)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _KEEPALIVE:
                if hasattr(socket, name):
                    sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def data_received(self, data: bytes) -> None:
        """Parse one read and pass its body bytes on as one piece."""
        sink = self._sink
        if sink is None:  # an idle connection has nothing to say
            self.abort()
            return
        if len(data) > _FULL_READ and not self._reading_paused and self._transport is not None:
            self._transport.pause_reading()
            self._backlog = data[_FULL_READ:]
            data = data[:_FULL_READ]
            asyncio.get_running_loop().call_soon(self._read_on)
        reader = self._reader
        parts = reader.parts
        try:
            fault = reader.feed(data)
            if self._head_told and len(parts) == 1 and fault is None and not reader.complete:
                sink.data(parts.pop())  # the usual read of a stream: one HTTP chunk
            else:
                self._tell(sink, fault)
        except Exception as error:
            self._fail(sink, error)

    def eof_received(self) -> None:
        """The engine will send no more: the transport closes, and `connection_lost` says what that means."""

    def connection_lost(self, exc: Exception | None) -> None:
        """End a body that runs until the close; anything else that was under way is broken."""
        self._pool.gone(self)
        reader = self._reader
        self._unsent = None
        sink, self._sink = self._sink, None
        if sink is None:
            return
        if reader.head_done and not reader.framed and exc is None and not self._backlog:
            sink.end()
        elif self._answered:
            sink.broken(StreamBroken("the engine closed the connection in the middle of its answer"))
        elif self.exchanges > 1 and self._pool.wheel.clock() - self._sent_at < _STALE_WITHIN_S:
            sink.broken(Stale("the engine closed a kept connection"))
        else:
            sink.broken(StreamBroken("the engine closed the connection without an answer"))

    def pause_writing(self) -> None:
        """The engine takes the body slower than we write it."""
        self._write_paused = True

    def resume_writing(self) -> None:
        """Write the next slices."""
        self._write_paused = False
        self._push()

    # --- inside ---

    def _tell(self, sink: Sink, fault: str | None) -> None:
        reader = self._reader
        self._answered = True
        if not self._head_told and reader.head_done:
            self._head_told = True
            sink.head(reader.status, reader.headers)
        parts = reader.parts
        if parts:
            data = parts[0] if len(parts) == 1 else b"".join(parts)
            parts.clear()
            if self._sink is sink:
                sink.data(data)
        if self._sink is not sink:  # it had enough
            return
        if fault is not None:
            self._fail(sink, StreamBroken(f"the engine's answer is not HTTP: {fault}"))
        elif reader.complete:
            self._sink = None
            if reader.keep and self._unsent is None and not self._backlog:
                self.resume()
                self._pool.keep(self)
            else:
                self.abort()
            sink.end()

    def _fail(self, sink: Sink, error: Exception) -> None:
        if self._sink is sink:
            self._sink = None
        self.abort()
        if not isinstance(error, UpstreamError):
            cause, error = error, StreamBroken("the answer could not be relayed")
            error.__cause__ = cause
        sink.broken(error)

    def _read_on(self) -> None:
        """Take the next part of a long read, and read again when there is none."""
        if self._reading_paused or self._transport is None or self._transport.is_closing():
            return
        data, self._backlog = self._backlog, b""
        if data:
            self.data_received(data)
        if not self._backlog and not self._reading_paused and not self._transport.is_closing():
            self._transport.resume_reading()

    def _push(self) -> None:
        while self._unsent is not None and not self._write_paused:
            piece = self._unsent.popleft()
            if len(piece) > _SLICE:
                self._unsent.appendleft(piece[_SLICE:])
            elif not self._unsent:
                self._unsent = None
            self._write(piece[:_SLICE])

    def _write(self, data: bytes | memoryview) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

"""Clients for the relay: one that remembers, and one over a real socket that may stop reading."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from gateway.wire.dialect import OPENAI

__all__ = ["MemoryClient", "SocketClient"]


class MemoryClient:
    """A Downstream that remembers. With `full` True every write says that the high-water mark is passed."""

    def __init__(self) -> None:
        self.on_drain: Callable[[], None] | None = None
        self.dialect = OPENAI
        self.extra: tuple[tuple[str, str], ...] = ()
        self.shown = False
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.length: int | None = None
        self.writes: list[bytes] = []
        self.started = self.closed = self.ended = self.aborted = False
        self.full = False
        self.wrote = asyncio.Event()

    @property
    def body(self) -> bytes:
        return b"".join(self.writes)

    def start(self, status: int, headers: Sequence[tuple[str, str]], length: int | None) -> None:
        assert not self.started
        self.started = True
        self.status, self.headers, self.length = status, list(headers), length
        self.wrote.set()

    def write(self, data: bytes) -> bool:
        assert self.started
        assert not self.ended
        assert not self.aborted
        assert data
        self.writes.append(data)
        self.wrote.set()
        return not self.full

    def end(self, data: bytes = b"") -> None:
        assert self.started
        assert not self.ended
        assert not self.aborted
        if data:
            self.writes.append(data)
        self.ended = True

    def cut_off(self) -> None:
        self.abort()

    def abort(self) -> None:
        assert not self.ended
        self.aborted = True

    def drain(self) -> None:
        self.full = False
        assert self.on_drain is not None
        self.on_drain()

    async def until(self, condition: Callable[[], bool], seconds: float = 5.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                self.wrote.clear()
                await self.wrote.wait()


class SocketClient(asyncio.Protocol):
    """A Downstream over a real transport, with chunked coding, as an edge would write it."""

    HIGH = 64 << 10

    def __init__(self) -> None:
        self.on_drain: Callable[[], None] | None = None
        self.dialect = OPENAI
        self.extra: tuple[tuple[str, str], ...] = ()
        self.shown = self.started = self.closed = False
        self.deepest = 0
        self._paused = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self._transport = transport  # type: ignore[assignment]
        self._transport.set_write_buffer_limits(high=self.HIGH)  # type: ignore[union-attr]

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self.on_drain is not None:
            self.on_drain()

    def start(self, status: int, headers: Sequence[tuple[str, str]], length: int | None) -> None:
        assert self._transport is not None
        self.started = True
        self._transport.write(b"HTTP/1.1 %d OK\r\nTransfer-Encoding: chunked\r\n\r\n" % status)

    def write(self, data: bytes) -> bool:
        assert self._transport is not None
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.deepest = max(self.deepest, self._transport.get_write_buffer_size())
        return not self._paused

    def end(self, data: bytes = b"") -> None:
        assert self._transport is not None
        if data:
            self.write(data)
        self._transport.write(b"0\r\n\r\n")

    def cut_off(self) -> None:
        self.abort()

    def abort(self) -> None:
        assert self._transport is not None
        if self._paused:
            self._transport.abort()
        else:
            self._transport.close()

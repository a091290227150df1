"""Connections to one engine, kept between requests. One pool a backend: a silent one can use up only its own."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Sequence
from urllib.parse import urlsplit

from gateway.errors import ConnectFailed
from gateway.relay.connecting import connect
from gateway.relay.connection import Connection
from gateway.relay.sink import Sink
from gateway.relay.wheel import TimerWheel

__all__ = ["Pool"]


class Pool:
    """At most `limit` connections to the engine at `url` (http or https).

    A connection is kept for `idle_s` seconds after an answer and for `exchanges` requests: engines close theirs after
    5 s (llama.cpp and uvicorn alike), llama.cpp also after 100 requests, and being first avoids writing into a
    connection that is just being closed. `connect_s` bounds the wait for a free place plus the connect, in seconds.
    """

    def __init__(
        self,
        url: str,
        *,
        wheel: TimerWheel,
        limit: int = 1024,
        connect_s: float = 2.0,
        idle_s: float = 4.0,
        exchanges: int = 90,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("an engine's address is http://host:port or https://host:port")
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        name = f"[{self._host}]" if ":" in self._host else self._host
        self.authority = name if parts.port is None else f"{name}:{parts.port}"
        """The Host field of a request."""
        self.base = parts.path.rstrip("/")
        """The path before every target, often empty."""
        self.wheel = wheel
        self.connect_s = connect_s
        self._idle_s = idle_s
        self._exchanges = exchanges
        self._limit = limit
        self._connecting = 0
        self._open: set[Connection] = set()
        self._idle: dict[Connection, None] = {}  # newest last, used first, so that the others time out
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed = self._retired = False
        self._sockets: set[Connection] = set()  # those whose transport has not said goodbye yet
        self._gone: asyncio.Future[None] | None = None

    @property
    def open_connections(self) -> int:
        """Connections that carry a request or are kept, plus those being made."""
        return len(self._open) + self._connecting

    @property
    def idle_connections(self) -> int:
        """Connections that are kept for the next request."""
        return len(self._idle)

    async def call(
        self,
        head: bytes,
        body: Sequence[bytes | memoryview],
        sink: Sink,
        *,
        fresh: bool = False,
        connect_s: float | None = None,
    ) -> Connection:
        """Send a request and let `sink` have the answer; `fresh` forbids a kept connection.

        Raises ConnectFailed. A kept connection that turns out to be closed tells the sink so with `Stale`.
        """
        connection = None if fresh else self._take()
        if connection is None:
            connection = await self._get(self.connect_s if connect_s is None else connect_s, fresh)
        connection.send(head, body, sink)
        return connection

    def close(self) -> None:
        """Close every connection now, those in use too, and refuse new calls."""
        self._closed = True
        self.retire()
        for connection in list(self._open):
            connection.cut("the gateway closed its connections to this engine")

    async def wait_closed(self) -> None:
        """After `close`: until the last socket is shut."""
        if self._sockets:
            self._gone = self._gone or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._gone)

    def retire(self) -> None:
        """Keep no connection from now on; requests under way, also those that are yet to connect, run to their end."""
        self._retired = True
        for connection in list(self._idle):
            connection.abort()
        if self._closed:
            self._wake(all_of_them=True)

    # --- for connections ---

    def keep(self, connection: Connection) -> None:
        """An exchange ended well: hold the connection for the next, unless it has served enough."""
        if self._retired or connection.exchanges >= self._exchanges or not connection.usable():
            connection.abort()
            return
        self._idle[connection] = None
        if connection.idle_timer is None:
            connection.idle_timer = self.wheel.start(self._idle_s, connection.abort)
        else:
            connection.idle_timer.restart()
        self._wake()

    def lost(self, connection: Connection) -> None:
        """A connection is closed or closing."""
        self._idle.pop(connection, None)
        if connection.idle_timer is not None:
            connection.idle_timer.cancel()
            connection.idle_timer = None
        if connection in self._open:
            self._open.discard(connection)
            self._wake()

    def made(self, connection: Connection) -> None:
        """A transport exists."""
        self._sockets.add(connection)

    def gone(self, connection: Connection) -> None:
        """A transport is closed for good."""
        self.lost(connection)
        self._sockets.discard(connection)
        if not self._sockets and self._gone is not None:
            self._gone.set_result(None)
            self._gone = None

    # --- inside ---

    def _take(self) -> Connection | None:
        while self._idle:
            connection, _ = self._idle.popitem()
            if connection.idle_timer is not None:
                connection.idle_timer.cancel()
            if connection.usable():
                return connection
            connection.abort()
        return None

    async def _get(self, connect_s: float, fresh: bool) -> Connection:
        loop = asyncio.get_running_loop()
        waited = True
        first = not self._waiters
        try:
            async with asyncio.timeout(None) as deadline:
                timer = self.wheel.start(connect_s, lambda: deadline.reschedule(loop.time()))
                try:
                    while not self._closed:
                        if first and not fresh and (connection := self._take()):
                            return connection
                        if first and self.open_connections >= self._limit and self._idle:
                            next(iter(self._idle)).abort()
                        if first and self.open_connections < self._limit:
                            waited = False
                            return await self._open_one()
                        await self._free_place(loop)
                        first = True
                finally:
                    timer.cancel()
        except TimeoutError:
            what = f"none of the {self._limit} connections to the engine fell free" if waited else "no connection"
            raise ConnectFailed(f"{what} within {connect_s:g} s (limit: connect)") from None
        raise ConnectFailed("this engine is no longer in use")

    async def _open_one(self) -> Connection:
        connection = Connection(self)
        self._connecting += 1
        try:
            await connect(connection, self._host, self._port, self._tls)
            self._open.add(connection)
        finally:
            self._connecting -= 1
            if connection not in self._open:
                self.gone(connection)  # uvloop does not tell a protocol whose connect was cancelled
                self._wake()
        if self._closed:
            connection.abort()
            raise ConnectFailed("this engine is no longer in use")
        return connection

    async def _free_place(self, loop: asyncio.AbstractEventLoop) -> None:
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._wake()  # the place it was given goes to the next
            raise
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def _wake(self, *, all_of_them: bool = False) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                if not all_of_them:
                    return

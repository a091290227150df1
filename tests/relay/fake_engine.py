"""An HTTP server on loopback that does what a script says, byte by byte, and remembers what it saw.

    async with FakeEngine(sse(token("Hel"), token("lo"), FINISH, DONE)) as engine:
        ...  # engine.url, engine.requests, engine.open, engine.left

A script is a coroutine function of (request, wire); it is called once a request. A list of scripts is used up in
order, the last one for every request after.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = [
    "DONE",
    "FINISH",
    "ROLE",
    "STREAM_HEAD",
    "FakeEngine",
    "Request",
    "Script",
    "Wire",
    "chunk",
    "json_answer",
    "raw",
    "silent",
    "sse",
    "token",
]

ROLE = b'data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}\n\n'
FINISH = b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nServer: fake\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


def token(text: str) -> bytes:
    """A middle chunk as llama.cpp and vLLM send it."""
    delta = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    body = json.dumps({"id": "c", "choices": [delta]}, ensure_ascii=False, separators=(",", ":"))
    return b"data: " + body.encode() + b"\n\n"


def chunk(data: bytes) -> bytes:
    """One chunk of HTTP's chunked coding."""
    return b"%x\r\n%b\r\n" % (len(data), data)


@dataclass
class Request:
    """One request as it came; `connection` counts from 0."""

    connection: int
    line: str
    headers: list[tuple[str, str]]
    body: bytes

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]


@dataclass
class Wire:
    """The engine's end of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    keep: bool = True
    sent: int = 0

    async def send(self, *pieces: bytes) -> None:
        """Each piece in a segment of its own."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            self.sent += len(piece)
            await asyncio.sleep(0)

    async def gone(self) -> None:
        """Until the other side has closed."""
        self.keep = False
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65536):
                pass

    def reset(self) -> None:
        """RST instead of FIN."""
        self.keep = False
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def close(self) -> None:
        """FIN after what was written."""
        self.keep = False
        self.writer.close()


Script = Callable[[Request, Wire], Awaitable[None]]


def raw(*pieces: bytes, then: str = "keep") -> Script:
    """These bytes, then "keep" the connection, "close" it, "reset" it or be "silent"."""

    async def script(_request: Request, wire: Wire) -> None:
        await wire.send(*pieces)
        if then == "close":
            wire.close()
        elif then == "reset":
            await asyncio.sleep(0.02)  # an RST overtakes bytes that the other side has not read yet
            wire.reset()
        elif then == "silent":
            await wire.gone()

    return script


def silent() -> Script:
    """Take the request, say nothing, wait until the other side gives up."""
    return raw(then="silent")


def sse(*events: bytes, then: str = "keep", end: bool = True, cuts: Iterable[int] = ()) -> Script:
    """A chunked event stream, one HTTP chunk an event; `cuts` are byte offsets at which the body is cut instead.

    `end` False leaves out the last chunk.
    """
    body = b"".join(events)
    borders = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    parts = [body[a:b] for a, b in pairwise(borders)] if len(borders) > 2 else list(events)
    pieces = [STREAM_HEAD, *(chunk(part) for part in parts if part)]
    if end:
        pieces.append(b"0\r\n\r\n")
    return raw(*pieces, then=then)


def json_answer(payload: object, status: int = 200, headers: Sequence[tuple[str, str]] = ()) -> Script:
    """A JSON body with its length."""
    body = json.dumps(payload).encode()
    extra = "".join(f"{key}: {value}\r\n" for key, value in headers).encode()
    head = b"HTTP/1.1 %d Whatever\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % (status, len(body))
    return raw(head + extra + b"\r\n", body)


@dataclass
class FakeEngine:
    """`read_body` False: it never reads past a request's head. `idle_close_s`: it closes idle connections."""

    scripts: Script | list[Script]
    read_body: bool = True
    idle_close_s: float | None = None
    tls: ssl.SSLContext | None = None
    requests: list[Request] = field(default_factory=list)
    accepted: int = 0
    open: int = 0
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{port}"

    async def __aenter__(self) -> FakeEngine:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def until(self, condition: Callable[[], bool], seconds: float = 5.0) -> None:
        """Wait until something about this engine is true; TimeoutError otherwise."""
        async with asyncio.timeout(seconds):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def left(self, seconds: float = 5.0) -> None:
        """Wait until no connection is open any more."""
        await self.until(lambda: self.open == 0, seconds)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        number, self.accepted = self.accepted, self.accepted + 1
        self.open += 1
        self._changed.set()
        wire = Wire(reader, writer)
        try:
            while wire.keep:
                request = await self._read(number, reader)
                self.requests.append(request)
                self._changed.set()
                script = self.scripts
                if isinstance(script, list):
                    script = script.pop(0) if len(script) > 1 else script[0]
                await script(request, wire)
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError, asyncio.CancelledError):
            pass
        finally:
            self.open -= 1
            self._changed.set()
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _read(self, number: int, reader: asyncio.StreamReader) -> Request:
        async with asyncio.timeout(self.idle_close_s):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head[:-4].split("\r\n")
        headers = [(name.lower(), value.strip()) for name, _, value in (text.partition(":") for text in fields)]
        length = next((int(value) for name, value in headers if name == "content-length"), 0)
        body = await reader.readexactly(length) if self.read_body else b""
        return Request(number, line, headers, body)

"""Request bodies within limits: of one, of all together, and of time."""

from __future__ import annotations

import asyncio
from types import TracebackType

from aiohttp import StreamReader, web
from aiohttp.web_protocol import RequestPayloadError

from gateway.edge.coding import decode_off_loop
from gateway.edge.limits import EdgeLimits
from gateway.errors import BodyTimeout, BodyTooLarge, ClientClosed, MalformedRequest, Unavailable

__all__ = ["BodyBudget", "Hold", "check_declared", "discard", "leaves_reusable", "read_body"]

_DISCARD = 64 * 1024
"""Bytes of an unwanted body that are read and dropped to keep the connection; past that it is closed."""
_DISCARD_S = 2.0
_JOIN_INLINE = 1024 * 1024
"""Bytes up to which the pieces of a body are joined on the loop; in a thread, longer joins let the loop run on."""


class BodyBudget:
    """The sum of request bodies held in memory, in bytes, under `limit`."""

    __slots__ = ("held", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0

    def hold(self) -> Hold:
        """A share of the budget for one request; a context manager that gives everything back."""
        return Hold(self)


class Hold:
    """One request's share of the budget."""

    __slots__ = ("_budget", "bytes")

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self.bytes = 0

    def reserve(self, total: int) -> None:
        """Hold `total` bytes from now on. Raises Unavailable when all bodies together would be over the limit."""
        budget, more = self._budget, total - self.bytes
        if more > 0 and budget.held + more > budget.limit:
            raise Unavailable(
                "request bodies fill the memory set aside for them (server.limits.memory); try again",
                code="memory_limit",
                retry_after=2.0,
            )
        budget.held += more
        self.bytes = total

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._budget.held -= self.bytes
        self.bytes = 0


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"the body is over the limit of {limit} bytes (server.limits.body)")


def check_declared(request: web.BaseRequest, limits: EdgeLimits) -> int:
    """The declared length in bytes, 0 when there is none. Raises BodyTooLarge before a byte of the body is read."""
    declared = request.content_length or 0
    if declared > limits.body:
        raise _too_large(limits.body)
    return declared


async def read_body(request: web.BaseRequest, limits: EdgeLimits, hold: Hold) -> bytes:
    """The whole body, decoded, its bytes charged to `hold`.

    A client that waits for `100 Continue` is invited here, so call this after every check that needs no body. Raises
    BodyTooLarge, BodyTimeout, MalformedRequest, UnsupportedCoding, Unavailable, ClientClosed.
    """
    hold.reserve(check_declared(request, limits))
    content = request.content
    try:
        if content.is_eof():
            body = content.read_nowait(-1)
        else:
            if request.headers.get("Expect", "").lower() == "100-continue" and request.transport is not None:
                request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            async with asyncio.timeout(limits.body_read):
                body = await _collect(content, limits.body, hold)
    except TimeoutError:
        raise BodyTimeout(f"the body did not arrive within {limits.body_read:g} s (server.limits.body_read)") from None
    except RequestPayloadError:
        raise MalformedRequest("the body's chunked framing is damaged") from None
    except ConnectionError:
        raise ClientClosed("the client left while its body was read") from None
    if len(body) > limits.body:
        raise _too_large(limits.body)
    coding = request.headers.get("Content-Encoding")
    if coding:
        body = await decode_off_loop(coding, body, limits.body)
    hold.reserve(len(body))
    return body


async def _collect(content: StreamReader, limit: int, hold: Hold) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := await content.readany():
        size += len(piece)
        if size > limit:
            raise _too_large(limit)
        if size > hold.bytes:
            hold.reserve(size)
        pieces.append(piece)
    if len(pieces) == 1:
        return pieces[0]
    if size <= _JOIN_INLINE:
        return b"".join(pieces)
    return await asyncio.to_thread(b"".join, pieces)


def leaves_reusable(request: web.BaseRequest) -> bool:
    """Whether the connection can serve another request after an answer now.

    It can when the body was read, or when the rest is so short, and surely coming, that reading it past is cheaper than
    a new connection.
    """
    content = request.content
    if content.is_eof():
        return True
    length = request.content_length
    return content.exception() is None and length is not None and length <= _DISCARD and "Expect" not in request.headers


async def discard(content: StreamReader) -> None:
    """Read an unwanted body past, for `_DISCARD_S` at most: closing at once could reset the answer away."""
    try:
        async with asyncio.timeout(_DISCARD_S):
            while await content.readany():
                pass
    except (TimeoutError, RequestPayloadError, ConnectionError):
        return

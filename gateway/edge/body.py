"""Request bodies within limits: of one, of all together, and of time."""

from __future__ import annotations

import asyncio
from io import BytesIO

from aiohttp import StreamReader, web
from aiohttp.web_protocol import RequestPayloadError

from gateway.core.memory import LARGE, Hold
from gateway.edge.coding import decode_off_loop
from gateway.edge.limits import EdgeLimits
from gateway.edge.pace import SLOWEST, Pace, Paced
from gateway.errors import BodyTimeout, BodyTooLarge, ClientClosed, MalformedRequest, Unavailable

__all__ = ["check_declared", "discard", "leaves_reusable", "read_body"]

_DISCARD = 64 * 1024
"""Bytes of an unwanted body that are read and dropped to keep the connection; past that it is closed."""
_DISCARD_S = 2.0


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

    A large one waits until there is room for it, unread, for as long as a body may take to arrive. It then has all the
    room that it will need, so that none waits half read; while others wait, it keeps that as long as it keeps its pace.
    A client that waits for `100 Continue` is invited here, so call this after every check that needs no body. Raises
    BodyTooLarge, BodyTimeout, MalformedRequest, UnsupportedCoding, Unavailable, ClientClosed.
    """
    content = request.content
    loop = asyncio.get_running_loop()
    late = loop.time() + limits.body_read
    declared = check_declared(request, limits)
    await _room(hold, declared, late)
    paced: Paced | None = None
    try:
        if content.is_eof():
            body = content.read_nowait(-1)
        else:
            if request.headers.get("Expect", "").lower() == "100-continue" and request.transport is not None:
                request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            async with asyncio.timeout_at(late) as deadline:
                paced = Paced(Pace(declared, limits.body_read, loop.time()), hold, deadline)
                with paced:
                    body = await _collect(content, limits.body, declared, hold, late, paced)
    except TimeoutError:
        if paced is not None and paced.gave_way:
            raise BodyTimeout(
                f"the body came at less than {SLOWEST // 1024} KiB/s, or than its length in {limits.body_read:g} s,"
                " while others waited for its place (server.limits.memory); try again"
            ) from None
        raise BodyTimeout(f"the body did not arrive within {limits.body_read:g} s (server.limits.body_read)") from None
    except RequestPayloadError:
        raise MalformedRequest("the body's chunked framing is damaged") from None
    except ConnectionError:
        raise ClientClosed("the client left while its body was read") from None
    if len(body) > limits.body:
        raise _too_large(limits.body)
    coding = request.headers.get("Content-Encoding")
    if coding:
        body = await _decoded(coding, body, limits.body, hold, late)
    await _room(hold, len(body), late)
    return body


async def _collect(content: StreamReader, limit: int, charged: int, hold: Hold, late: float, paced: Paced) -> bytes:
    whole = BytesIO()  # it grows in place where memory is mapped, and gives what it holds without a copy
    size = 0
    if charged > LARGE:
        paced.came(0)
    while piece := await content.readany():
        size += len(piece)
        if size > limit:
            raise _too_large(limit)
        if size > charged:  # it came without a length
            charged = size if size <= LARGE else min(limit, 2 * size)
            await _room(hold, charged, late)
            paced.begin()
        if charged > LARGE:
            paced.came(len(piece))
        whole.write(piece)
    return whole.getvalue()


async def _decoded(coding: str, body: bytes, limit: int, hold: Hold, late: float) -> bytes:
    """The decoded body; one that turns out to be large is begun anew once there is room for the largest."""
    try:
        return await decode_off_loop(coding, body, min(limit, LARGE))
    except BodyTooLarge:
        if limit <= LARGE:
            raise
    await _room(hold, limit, late)
    return await decode_off_loop(coding, body, limit)


async def _room(hold: Hold, size: int, late: float) -> None:
    """Charge a body of `size` bytes, a large one twice: a translation makes another of it.

    A large one waits for its turn until `late`, on the loop's clock. Raises Unavailable when there is no room.
    """
    large = size > LARGE
    if _charged(hold, size):
        return
    if large:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def look() -> None:
            if not done.done() and _charged(hold, size):
                done.set_result(None)

        hold.budget.when_less(hold, look)
        try:
            async with asyncio.timeout_at(late):
                await done
            return
        except TimeoutError:
            pass
        finally:
            hold.budget.forget(hold)
    raise Unavailable(
        "request bodies fill the memory set aside for them (server.limits.memory); try again",
        code="memory_limit",
        retry_after=2.0,
    )


def _charged(hold: Hold, size: int) -> bool:
    return hold.takes(body=size, copy=size) if size > LARGE else hold.takes(body=size, copy=0)


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

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import time
import weakref
from collections.abc import Callable

import pytest

from gateway.edge.connection import HIGH_WATER
from gateway.edge.downstream import ClientDownstream
from gateway.errors import ClientClosed, ContextTooLong, Saturated, StreamBroken
from gateway.wire.inbound import Inbound
from tests.edge.conftest import Door
from tests.edge.wire_client import request

CHAT = "/v1/chat/completions"
EVENTS = (("content-type", "text/event-stream; charset=utf-8"), ("x-kvgate-decision", "d1"))


async def test_events_arrive_one_by_one_and_the_connection_lives_on(door: Door) -> None:
    step = asyncio.Event()

    async def serve(inbound: Inbound, down: ClientDownstream) -> None:
        down.start(200, EVENTS, None)
        for number in range(3):
            assert down.write(b"data: %d\n\n" % number)
            await step.wait()
            step.clear()
        down.write(b"data: [DONE]\n\n")
        down.end()

    door.gateway.behave = serve
    client = await door.connect()
    for _ in range(2):
        await client.send(request("POST", CHAT, b"{}", accept_encoding="gzip"))
        status, headers, _ = await client.head()
        assert status == 200
        assert headers["x-accel-buffering"] == "no"
        assert headers["cache-control"] == "no-cache"
        assert headers["x-kvgate-decision"] == "d1"
        assert headers["transfer-encoding"] == "chunked"
        assert "content-encoding" not in headers
        assert "date" in headers
        for number in range(3):
            assert await client.chunk() == b"data: %d\n\n" % number
            step.set()
        assert await client.chunk() == b"data: [DONE]\n\n"
        assert await client.chunk() == b""
    assert [line["outcome"] for line in door.access()] == ["completed", "completed"]


async def test_the_head_does_not_wait_for_the_first_byte(door: Door) -> None:
    release = asyncio.Event()

    async def serve(inbound: Inbound, down: ClientDownstream) -> None:
        down.start(200, EVENTS, None)
        assert down.started
        await release.wait()
        down.end()

    door.gateway.behave = serve
    client = await door.connect()
    await client.send(request("POST", CHAT, b"{}"))
    assert (await client.head())[0] == 200
    release.set()
    assert await client.chunk() == b""


async def test_big_pieces_are_framed_right(door: Door) -> None:
    pieces = [b"a" * 65_535, b"b" * 65_536, b"", b"c" * 300_000, b"d"]

    async def serve(inbound: Inbound, down: ClientDownstream) -> None:
        down.start(200, EVENTS, None)
        for piece in pieces:
            down.write(piece)
        down.end()

    door.gateway.behave = serve
    client = await door.connect()
    reply = await client.request("POST", CHAT, b"{}")
    assert reply.complete
    assert reply.body == b"".join(pieces)
    assert (await client.request("GET", "/v1/models")).status == 200


async def test_a_broken_stream_ends_with_an_error_event_and_no_last_chunk(door: Door) -> None:
    async def serve(inbound: Inbound, down: ClientDownstream) -> None:
        down.start(200, EVENTS, None)
        down.write(b"data: one\n\n")
        raise StreamBroken("the engine's stream ended early", decision_id="d1")

    door.gateway.behave = serve
    client = await door.connect()
    reply = await client.request("POST", CHAT, b"{}")
    assert not reply.complete
    assert reply.body.startswith(b"data: one\n\ndata: {")
    assert b'"code":"upstream_stream_broken"' in reply.body
    assert b"[DONE]" not in reply.body
    assert await client.ended()
    (line,) = door.access()
    assert (line["status"], line["outcome"], line["reason"]) == (200, "failed", "upstream_stream_broken")


@pytest.mark.parametrize("how", ["short", "nothing", "forgotten"])
async def test_an_unfinished_body_never_looks_finished(door: Door, how: str) -> None:
    async def serve(inbound: Inbound, down: ClientDownstream) -> None:
        if how == "nothing":
            return
        down.start(200, (("content-type", "application/json"),), 100 if how == "short" else None)
        down.write(b"{")
        if how == "short":
            down.end()

    door.gateway.behave = serve
    client = await door.connect()
    await client.send(request("POST", CHAT, b"{}"))
    if how == "nothing":
        assert await client.ended()
    else:
        reply = await client.reply()
        assert (reply.body, reply.complete) == (b"{", False)
        assert await client.ended()
    assert [line["outcome"] for line in door.access()] == ["failed"]


async def test_errors_say_when_to_come_back_or_that_it_wont_help(door: Door) -> None:
    errors = iter(
        (
            Saturated("full", retry_after=10.2, decision_id="d7"),
            Saturated("full", retry_after=0.001),
            Saturated("full", retry_after=900.0),
            ContextTooLong("too long", decision_id="d8"),
        )
    )

    async def serve(inbound: Inbound, down: ClientDownstream) -> None:
        raise next(errors)

    door.gateway.behave = serve
    client = await door.connect()
    reply = await client.request("POST", CHAT, b"{}")
    assert (reply.status, reply.headers["retry-after"], reply.headers["x-kvgate-decision"]) == (429, "11", "d7")
    assert "x-should-retry" not in reply.headers
    assert (await client.request("POST", CHAT, b"{}")).headers["retry-after"] == "1"
    assert (await client.request("POST", CHAT, b"{}")).headers["retry-after"] == "59"
    reply = await client.request("POST", CHAT, b"{}")
    assert (reply.status, reply.error["code"], reply.headers["x-should-retry"]) == (
        400,
        "context_length_exceeded",
        "false",
    )


class Held:
    """What a frame holds of a request, and can be seen to let go of."""


@pytest.mark.parametrize("kind", [Saturated, KeyError, ClientClosed])
async def test_an_error_keeps_nothing_of_its_request(door: Door, kind: type[Exception]) -> None:
    held: list[weakref.ref[Held]] = []

    async def attempt(error: Exception) -> None:
        body = Held()
        held.append(weakref.ref(body))
        raise error

    async def serve(inbound: Inbound, down: ClientDownstream) -> None:
        error = kind("no")  # named by a variable of a frame that it holds: a cycle
        try:
            await attempt(error)
        except kind as cause:
            again = kind("no again")
            raise again from cause

    door.gateway.behave = serve
    client = await door.connect()
    gc.collect()
    gc.disable()
    try:
        await client.send(request("POST", CHAT, b"{}"))
        await client.reader.read(1)
        await asyncio.sleep(0.05)
        assert [ref() for ref in held] == [None]
    finally:
        gc.enable()


async def test_an_unforeseen_error_tells_the_client_nothing_and_the_log_where(door: Door) -> None:
    async def serve(inbound: Inbound, down: ClientDownstream) -> None:
        raise KeyError(inbound.body.decode())

    door.gateway.behave = serve
    client = await door.connect()
    reply = await client.request("POST", CHAT, b'{"messages":"MARKER of a prompt"}', accept="text/html")
    assert (reply.status, reply.error["code"]) == (500, "internal_error")
    assert (await client.request("GET", "/v1/models")).status == 200
    assert door.log.flush()
    assert b"MARKER" not in reply.body + door.lines.data
    assert b"KeyError" in door.lines.data
    assert b"in serve" in door.lines.data


async def test_extra_fields_come_with_whatever_begins_the_answer(door: Door) -> None:
    async def serve(inbound: Inbound, down: ClientDownstream) -> None:
        down.extra = (("x-kvgate-backend", "rig"), ("x-kvgate-decision", "d9"))
        if inbound.body == b"fail":
            raise Saturated("full", decision_id="d9")
        down.start(200, EVENTS, 0)
        down.end()

    door.gateway.behave = serve
    client = await door.connect()
    for body in (b"fail", b"{}"):
        reply = await client.request("POST", CHAT, body)
        assert reply.headers["x-kvgate-backend"] == "rig"
        assert reply.raw.lower().count(b"x-kvgate-decision:") == 1


async def test_header_values_cant_break_out(door: Door) -> None:
    async def serve(inbound: Inbound, down: ClientDownstream) -> None:
        down.start(
            200,
            (("x-note", "a\r\nx-evil: 1"), ("content-length", "7"), ("Transfer-Encoding", "gzip"), ("connection", "x")),
            2,
        )
        down.write(b"{}")
        down.end()

    door.gateway.behave = serve
    client = await door.connect()
    reply = await client.request("POST", CHAT, b"{}")
    assert reply.body == b"{}"
    assert "x-evil" not in reply.headers
    assert reply.headers["content-length"] == "2"
    assert not {"transfer-encoding", "connection"} & set(reply.headers)


@pytest.mark.parametrize("keep", [False, True])
async def test_http_1_0_gets_no_chunks(door: Door, keep: bool) -> None:
    async def serve(inbound: Inbound, down: ClientDownstream) -> None:
        down.start(200, EVENTS, None)
        down.write(b"data: 1\n\n")
        down.write(b"data: 2\n\n")
        down.end()

    door.gateway.behave = serve
    client = await door.connect()
    connection = b"Connection: keep-alive\r\n" if keep else b""
    if keep:
        await client.send(b"GET /v1/models HTTP/1.0\r\n" + connection + b"\r\n")
        reply = await client.reply()
        assert reply.headers["connection"] == "keep-alive"
        assert reply.json["object"] == "list"
    await client.send(b"POST /v1/completions HTTP/1.0\r\nContent-Length: 2\r\n" + connection + b"\r\n{}")
    reply = await client.reply()
    assert "transfer-encoding" not in reply.headers
    assert reply.headers["connection"] == "close"
    assert reply.body == b"data: 1\n\ndata: 2\n\n"


async def test_pipelined_requests_are_answered_in_order(door: Door) -> None:
    client = await door.connect()
    await client.send(
        b"".join(request("POST", CHAT, b"x" * size) for size in range(1, 41)) + request("GET", "/v1/nope")
    )
    for size in range(1, 41):
        assert (await client.reply()).json["bytes"] == size
    assert (await client.reply()).status == 404


@pytest.mark.parametrize("stream", [False, True], ids=["queued", "mid-stream"])
async def test_a_client_that_leaves_is_noticed_at_once(door: Door, stream: bool) -> None:
    seen: list[ClientDownstream] = []

    async def serve(inbound: Inbound, down: ClientDownstream) -> None:
        seen.append(down)
        if stream:
            down.start(200, EVENTS, None)
            down.write(b"data: 1\n\n")
        await asyncio.Event().wait()

    door.gateway.behave = serve
    client = await door.connect()
    await client.send(request("POST", CHAT, b"{}"))
    await asyncio.wait_for(door.gateway.arrived.wait(), 5)
    if stream:
        await client.head()
        assert await client.chunk() == b"data: 1\n\n"
    left = time.monotonic()
    client.close()
    await asyncio.wait_for(door.gateway.cancelled.wait(), 5)
    assert time.monotonic() - left < 0.1
    assert seen[0].closed
    assert seen[0].write(b"data: 2\n\n") is False
    for _ in range(100):
        if door.handler.running == 0:
            break
        await asyncio.sleep(0.01)
    (line,) = door.access()
    assert (line["status"], line["outcome"]) == (499, "client_closed")
    assert b"trace" not in door.lines.data


async def test_a_client_that_leaves_within_its_body_reaches_nobody(door: Door) -> None:
    client = await door.connect()
    await client.send(request("POST", CHAT, content_length="100") + b"x")
    await asyncio.sleep(0.02)
    client.close()
    for _ in range(200):
        if door.access():
            break
        await asyncio.sleep(0.01)
    assert [line["outcome"] for line in door.access()] == ["client_closed"]
    assert door.gateway.seen == []
    assert door.public.memory.held == 0
    assert b"trace" not in door.lines.data


async def pump(down: ClientDownstream, total: int, most: Callable[[int], None]) -> None:
    """Write `total` bytes as a relay does: stop on False, go on at on_drain."""
    drained = asyncio.Event()
    down.on_drain = drained.set
    piece, sent = b"x" * 16_384, 0
    while sent < total:
        sent += len(piece)
        if not down.write(piece):
            assert down._transport is not None
            most(down._transport.get_write_buffer_size())
            drained.clear()
            await drained.wait()
    down.end()


async def slow_reader(door: Door) -> None:
    total, sizes = 8 * 1024 * 1024, []
    finished = asyncio.Event()

    async def serve(inbound: Inbound, down: ClientDownstream) -> None:
        down.start(200, EVENTS, None)
        await pump(down, total, sizes.append)
        finished.set()

    door.gateway.behave = serve
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
    raw.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(raw, ("127.0.0.1", door.port))
    await loop.sock_sendall(raw, request("POST", CHAT, b"{}"))
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(finished.wait(), 0.5)
    assert sizes, "a reader that reads nothing must pause the writer"
    assert not finished.is_set()
    assert max(sizes) <= HIGH_WATER + 32_768
    got = 0
    while got < total:
        got += len(await asyncio.wait_for(loop.sock_recv(raw, 1 << 20), 5))
    await asyncio.wait_for(finished.wait(), 5)
    assert max(sizes) <= HIGH_WATER + 32_768
    raw.close()


async def test_a_slow_reader_holds_the_writer_back(door: Door) -> None:
    await slow_reader(door)


async def test_a_dead_reader_is_reset_when_given_up(door: Door) -> None:
    async def serve(inbound: Inbound, down: ClientDownstream) -> None:
        down.start(200, EVENTS, None)
        while down.write(b"x" * 65_536):
            pass
        down.abort()

    door.gateway.behave = serve
    client = await door.connect()
    await client.send(request("POST", CHAT, b"{}"))
    await asyncio.wait_for(door.gateway.arrived.wait(), 5)
    for _ in range(100):
        if not door.server.connections:
            break
        await asyncio.sleep(0.01)
    assert door.server.connections == []


async def test_cut_ends_streams_in_band_and_waiting_ones_with_503(door: Door) -> None:
    async def serve(inbound: Inbound, down: ClientDownstream) -> None:
        if inbound.body == b"stream":
            down.start(200, EVENTS, None)
            down.write(b"data: 1\n\n")
        await asyncio.Event().wait()

    door.gateway.behave = serve
    streaming, waiting = await door.connect(), await door.connect()
    await streaming.send(request("POST", CHAT, b"stream"))
    await streaming.head()
    await waiting.send(request("POST", CHAT, b"wait"))
    while len(door.gateway.seen) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    assert door.handler.cut() == 2
    assert await streaming.chunk() == b"data: 1\n\n"
    event = await streaming.chunk()
    assert event.startswith(b'data: {"error":')
    assert b"shutting_down" in event
    with pytest.raises(asyncio.IncompleteReadError):
        await streaming.chunk()
    reply = await waiting.reply()
    assert (reply.status, reply.error["code"]) == (503, "shutting_down")
    assert "retry-after" in reply.headers
    assert {line["reason"] for line in door.access()} == {"shutting_down"}


async def test_no_keep_alive_once_draining_and_idle_ones_are_closed(door: Door) -> None:
    idle, busy = await door.connect(), await door.connect()
    assert (await idle.request("GET", "/v1/models")).status == 200
    release = asyncio.Event()

    async def serve(inbound: Inbound, down: ClientDownstream) -> None:
        await release.wait()
        await door.gateway.echo(inbound, down)

    door.gateway.behave = serve
    await busy.send(request("POST", CHAT, b"{}"))
    await asyncio.wait_for(door.gateway.arrived.wait(), 5)
    door.server.close_idle()
    assert await idle.ended()
    release.set()
    assert (await busy.reply()).json["bytes"] == 2
    assert await busy.ended()

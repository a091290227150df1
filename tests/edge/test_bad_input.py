from __future__ import annotations

import asyncio
import gzip
import sys
import time
import zlib

import brotli
import pytest

from gateway.edge.limits import EdgeLimits
from gateway.edge.server import RESERVE
from tests.edge.conftest import SECRET, Door, Opener
from tests.edge.wire_client import request

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CHAT = "/v1/chat/completions"
SMALL = EdgeLimits(body=1000, header=4096, body_read=0.2)


POST = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
GET = b"GET /v1/models HTTP/1.1\r\nHost: a\r\n"

UNPARSED = {
    "line": b"NONSENSE\r\n\r\n",
    "version": b"GET /v1/models HTTP/9.9\r\nHost: a\r\n\r\n",
    "header": GET + b"bad header\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "two-lengths": POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
    "length-and-chunked": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "negative": POST + b"Content-Length: -5\r\n\r\n",
}
TOO_LONG = {
    "field": GET + b"X-Long: " + b"a" * 5000 + b"\r\n\r\n",
    "target": b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    "number": GET + b"".join(b"X-%d: a\r\n" % i for i in range(300)) + b"\r\n",
    "sum": GET + b"X-Many: " + b"a" * 2000 + b"\r\nX-More: " + b"b" * 3000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("case", [*UNPARSED, *TOO_LONG])
async def test_e1_what_the_parser_refuses_is_json(open_door: Opener, case: str) -> None:
    status, code = (400, "invalid_request") if case in UNPARSED else (431, "headers_too_large")
    door = await open_door(SMALL)
    client = await door.connect()
    await client.send(UNPARSED.get(case) or TOO_LONG[case])
    reply = await client.reply()
    assert reply.status == status
    assert reply.error["code"] == code
    assert reply.headers["x-should-retry"] == "false"
    assert door.gateway.seen == []
    assert [line["status"] for line in door.access()] == [status]


async def test_a_refused_request_never_shows_its_bytes(open_door: Opener) -> None:
    door = await open_door(SMALL)
    client = await door.connect()
    await client.send(b"GET /v1/models HTTP/1.1\r\nHost: a\r\nAuthorization Bearer sk-test-SECRET123\r\n\r\n")
    reply = await client.reply()
    assert reply.status == 400
    assert door.log.flush()
    assert b"SECRET" not in reply.raw + reply.body + door.lines.data
    assert await client.ended()


@pytest.mark.parametrize("together", [True, False])
async def test_a_damaged_chunk_is_answered_at_once(door: Door, together: bool) -> None:
    client = await door.connect()
    head = request("POST", CHAT, transfer_encoding="chunked")
    started = time.monotonic()
    if together:
        await client.send(head + b"5\r\nhello\r\nZZ\r\n")
    else:
        await client.send(head + b"5\r\nhello\r\n")
        await asyncio.sleep(0.05)
        await client.send(b"ZZ\r\n")
    reply = await client.reply()
    assert reply.status == 400
    assert reply.error["type"] == "invalid_request_error"
    assert reply.headers["connection"] == "close"
    assert time.monotonic() - started < 2
    assert await client.ended()
    assert door.gateway.seen == []


async def test_b1_a_body_at_the_limit_is_served_and_one_more_byte_is_not(open_door: Opener) -> None:
    door = await open_door(EdgeLimits(body=1_048_577))
    client = await door.connect()
    reply = await client.request("POST", CHAT, b"x" * 1_048_577)
    assert reply.json["bytes"] == 1_048_577
    await client.send(request("POST", CHAT, content_length="1048578"))
    reply = await client.reply()
    assert reply.status == 413
    assert "1048577" in reply.error["message"]
    assert reply.headers["connection"] == "close"


async def test_b1_over_the_limit_without_a_length(open_door: Opener) -> None:
    door = await open_door(SMALL)
    client = await door.connect()
    await client.send(request("POST", CHAT, transfer_encoding="chunked"))
    await client.send(b"1f4\r\n" + b"x" * 500 + b"\r\n")
    await client.send(b"1f5\r\n" + b"x" * 501 + b"\r\n")
    reply = await client.reply()
    assert (reply.status, reply.headers["connection"]) == (413, "close")
    whole = await door.connect()
    await whole.send(request("POST", CHAT, transfer_encoding="chunked") + b"3e9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n")
    assert (await whole.reply()).status == 413
    assert door.gateway.seen == []


async def test_a_slow_body_is_given_up(open_door: Opener) -> None:
    door = await open_door(SMALL)
    client = await door.connect()
    await client.send(request("POST", CHAT, content_length="100") + b"x")
    reply = await client.reply()
    assert (reply.status, reply.error["code"], reply.headers["connection"]) == (408, "body_timeout", "close")
    assert "x-should-retry" not in reply.headers


@pytest.mark.parametrize("coding", ["gzip", "deflate", "raw-deflate", "zstd", "br"])
@pytest.mark.parametrize("size", [10, 200_000])
async def test_p2_compressed_bodies_arrive_decoded(door: Door, coding: str, size: int) -> None:
    body = (b"0123456789" * size)[:size]
    if coding == "zstd":
        packed = zstd.compress(body[: size // 2]) + zstd.compress(body[size // 2 :])
    elif coding == "gzip":
        packed = gzip.compress(body[: size // 2]) + gzip.compress(body[size // 2 :])
    elif coding == "deflate":
        packed = zlib.compress(body)
    elif coding == "br":
        packed = brotli.compress(body)
    else:
        packer = zlib.compressobj(wbits=-15)
        packed = packer.compress(body) + packer.flush()
    client = await door.connect()
    reply = await client.request("POST", CHAT, packed, content_encoding=coding.removeprefix("raw-"))
    assert reply.json["bytes"] == size
    assert door.gateway.seen[0].body == body


BOMBS = {
    "gzip": lambda data: gzip.compress(data, 6),
    "deflate": lambda data: zlib.compress(data, 6),
    "zstd": lambda data: zstd.compress(data),
    "br": lambda data: brotli.compress(data, quality=5),
}


@pytest.mark.parametrize("coding", BOMBS)
async def test_p2_a_bomb_is_refused_fast(open_door: Opener, coding: str) -> None:
    door = await open_door(EdgeLimits(body=2_000_000))
    client = await door.connect()
    bomb = BOMBS[coding](bytes(200_000_000))
    assert len(bomb) < 250_000
    started = time.monotonic()
    reply = await client.request("POST", CHAT, bomb, content_encoding=coding)
    assert time.monotonic() - started < 1
    assert (reply.status, reply.error["code"]) == (413, "body_too_large")
    assert door.gateway.seen == []


@pytest.mark.parametrize("coding", BOMBS)
async def test_p2_a_damaged_body_is_the_callers_fault(open_door: Opener, coding: str) -> None:
    door = await open_door(EdgeLimits(body=2_000_000))
    client = await door.connect()
    good = BOMBS[coding](bytes(range(256)) * 40)
    assert (await client.request("POST", CHAT, good, content_encoding=coding)).json["bytes"] == 10_240
    for bad in (good[:-12], b"\x00\x01" + good, b"plain", good + b"more"):
        reply = await client.request("POST", CHAT, bad, content_encoding=coding)
        assert (reply.status, reply.error["param"]) == (400, "Content-Encoding"), bad
    assert len(door.gateway.seen) == 1


async def test_p2_an_unknown_coding_is_415_and_names_those_that_are_read(open_door: Opener) -> None:
    door = await open_door(EdgeLimits(body=2_000_000))
    client = await door.connect()
    started = time.monotonic()
    members = gzip.compress(b"") * 50_000
    assert (await client.request("POST", CHAT, members, content_encoding="gzip")).status == 400
    assert time.monotonic() - started < 1
    reply = await client.request("POST", CHAT, b"{}", content_encoding="snappy")
    assert reply.status == 415
    assert "gzip, deflate, br, zstd" in reply.error["message"]
    assert (await client.request("POST", CHAT, b"{}", content_encoding="identity")).status == 200
    assert len(door.gateway.seen) == 1


async def test_b1_all_bodies_together_are_bounded_and_given_back(open_door: Opener) -> None:
    door = await open_door(EdgeLimits(body=1000, memory=1500))
    release = asyncio.Event()

    async def hold(inbound: object, down: object) -> None:
        await release.wait()
        await door.gateway.echo(inbound, down)  # type: ignore[arg-type]

    door.gateway.behave = hold
    first, second = await door.connect(), await door.connect()
    await first.send(request("POST", CHAT, b"x" * 1000))
    await asyncio.wait_for(door.gateway.arrived.wait(), 5)
    reply = await second.request("POST", CHAT, b"x" * 600)
    assert (reply.status, reply.error["code"], reply.headers["retry-after"]) == (503, "memory_limit", "2")
    chunked = await door.connect()
    await chunked.send(request("POST", CHAT, transfer_encoding="chunked") + b"258\r\n" + b"x" * 600 + b"\r\n0\r\n\r\n")
    assert (await chunked.reply()).status == 503
    release.set()
    assert (await first.reply()).status == 200
    assert (await second.request("POST", CHAT, b"x" * 600)).status == 200
    assert door.public.memory.held == 0


@pytest.mark.parametrize("chunked", [False, True])
async def test_p6_the_connection_serves_on_after_an_error(open_door: Opener, chunked: bool) -> None:
    door = await open_door(keys=True)
    client = await door.connect()
    for _ in range(3):
        reply = await client.request("POST", "/v1/nothing", b"{}" * 100)
        assert reply.status == 404
        assert "connection" not in reply.headers
        reply = await client.request("POST", CHAT, b"{}" * 100, authorization="Bearer wrong")
        assert reply.status == 401
        reply = await client.request("POST", CHAT, b"{}", authorization=f"Bearer {SECRET}")
        assert reply.status == 200


async def test_p6_no_invitation_before_key_and_size_are_checked(open_door: Opener) -> None:
    door = await open_door(EdgeLimits(body=1000), keys=True)
    for authorization, length, status in (("wrong", 500, 401), (SECRET, 5000, 413)):
        client = await door.connect()
        head = request(
            "POST", CHAT, content_length=str(length), expect="100-continue", authorization=f"Bearer {authorization}"
        )
        await client.send(head)
        reply = await client.reply()
        assert (reply.status, reply.headers["connection"]) == (status, "close")
    client = await door.connect()
    await client.send(
        request("POST", CHAT, content_length="500", expect="100-continue", authorization=f"Bearer {SECRET}")
    )
    assert (await client.head())[0] == 100
    await client.send(b"x" * 500)
    assert (await client.reply()).json["bytes"] == 500
    assert (await client.request("POST", CHAT, b"x", authorization=f"Bearer {SECRET}")).status == 200


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"expect": "pancakes", "connection": "close"}, 417, "expectation_failed"),
        ({"transfer_encoding": "gzip, chunked"}, 501, "unsupported_transfer_encoding"),
    ],
)
async def test_what_no_server_of_this_kind_does(door: Door, fields: dict[str, str], status: int, code: str) -> None:
    client = await door.connect()
    await client.send(request("POST", CHAT, **fields) + (b"0\r\n\r\n" if "transfer_encoding" in fields else b""))
    reply = await client.reply()
    assert (reply.status, reply.error["code"]) == (status, code)
    assert "reason" not in reply.error
    assert await client.ended()
    assert door.gateway.seen == []


async def test_a_full_gateway_still_tells_its_health(open_door: Opener) -> None:
    door = await open_door(EdgeLimits(connections=2))
    for _ in range(2):
        assert (await (await door.connect()).request("GET", "/v1/models")).status == 200
    for path in ("/health/live", "/health/ready"):
        probe = await door.connect()
        reply = await probe.request("GET", path)
        assert (reply.status, reply.headers["connection"]) == (200, "close")
        assert await probe.ended()
    other = await door.connect()
    reply = await other.request("POST", CHAT, b"x")
    assert (reply.status, reply.error["code"]) == (503, "too_many_connections")
    assert await other.ended()
    assert door.gateway.seen == []


async def test_the_reserve_for_health_checks_is_bounded(open_door: Opener) -> None:
    door = await open_door(EdgeLimits(connections=1))
    clients = [await door.connect() for _ in range(RESERVE + 2)]
    reply = await clients[-1].reply()
    assert (reply.status, reply.error["code"]) == (503, "too_many_connections")


async def test_too_many_connections_are_turned_away(open_door: Opener) -> None:
    door = await open_door(EdgeLimits(connections=2))
    clients = [await door.connect() for _ in range(2)]
    for client in clients:
        assert (await client.request("GET", "/v1/models")).status == 200
    third = await door.connect()
    reply = await third.reply()
    assert (reply.status, reply.error["code"], reply.headers["retry-after"]) == (503, "too_many_connections", "1")
    assert await third.ended()
    clients[0].close()
    await asyncio.sleep(0.05)
    fourth = await door.connect()
    assert (await fourth.request("GET", "/v1/models")).status == 200


async def test_a_head_that_never_ends_does_not_hold_its_connection(open_door: Opener) -> None:
    door = await open_door(SMALL)
    slow, silent = await door.connect(), await door.connect()
    await slow.send(b"POST /v1/chat/completions HTTP/1.1\r\nHo")
    async with asyncio.timeout(5.0):
        assert await slow.ended()
        assert await silent.ended()


async def test_a_connection_that_has_asked_once_stays_beyond_that(open_door: Opener) -> None:
    door = await open_door(SMALL)
    client = await door.connect()
    for _ in range(3):
        assert (await client.request("GET", "/health/live")).status == 200
        await asyncio.sleep(0.15)

from __future__ import annotations

import asyncio
import gzip
import json
import zlib

import brotli
import pytest

from gateway import clock
from tests.relay.fake_engine import Request, Wire, raw
from tests.shell.engine_double import llama_cpp, says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import chat

LIMIT = 2 * 1024 * 1024


def body_of(size: int) -> bytes:
    """A chat request of exactly so many bytes."""
    empty = json.dumps(chat("")).encode()
    return json.dumps(chat("a " * ((size - len(empty)) // 2) + "a" * ((size - len(empty)) % 2))).encode()


async def test_b1_a_body_over_a_mebibyte_is_served_and_one_over_the_limit_is_not(start: Start) -> None:
    engine = vllm(says("ok", prompt=260_000), window=4_000_000, pool=8_000_000)
    gateway = await start({"b1": engine}, server="limits: {body: 2MiB}", b1={"queued_prefill": "600s"})
    body = body_of(1_048_577)
    assert (await gateway.ask(body)).status == 200
    assert engine.asked[0].body == body
    reply = await gateway.ask(body_of(LIMIT + 1))
    assert (reply.status, reply.error["code"]) == (413, "body_too_large")
    assert str(LIMIT) in reply.error["message"]


async def test_b1_a_body_over_the_limit_without_a_length_is_refused_as_it_comes(start: Start) -> None:
    engine = vllm()
    gateway = await start({"b1": engine}, server="limits: {body: 2MiB}")
    client = await gateway.connect()
    await client.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
    piece = b"%x\r\n%b\r\n" % (65536, b" " * 65536)
    replied = asyncio.create_task(client.reply())
    for _ in range(LIMIT // 65536 + 2):
        if replied.done():
            break
        client.writer.write(piece)
        await asyncio.sleep(0)
    reply = await replied
    assert (reply.status, reply.error["code"]) == (413, "body_too_large")
    assert engine.asked == []


async def test_b1_all_bodies_together_are_bounded(start: Start) -> None:
    release = asyncio.Event()
    engine = vllm(says("ok", "ok", prompt=1_500_000, until=release), window=4_000_000, pool=8_000_000)
    limits = "limits: {body: 16MiB, memory: 16MiB, body_read: 3s}"
    gateway = await start({"b1": engine}, server=limits, b1={"queued_prefill": "2h"})
    first = await gateway.send(body_of(3 << 20))
    await engine.asked_for(1)
    assert gateway.app.public.memory.held == 3 << 20  # it passes through: no copy
    # A large one waits for as long as a body may take; a small one does not wait.
    second = await gateway.connect()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (6 << 20)
    await second.send(head + b" " * 1000)
    small = asyncio.create_task(gateway.chat())
    await engine.asked_for(2)
    reply = await second.reply()
    assert (reply.status, reply.error["code"]) == (503, "memory_limit")
    assert "retry-after" in reply.headers
    release.set()
    assert (await first.reply()).status == (await small).status == 200


async def test_p1_an_engines_compressed_answer_is_readable_and_its_length_right(start: Start) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
    answer = {"id": "c", "model": "tiny", "choices": [choice]}
    packed = gzip.compress(json.dumps(answer).encode())
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n"
    hop = b"Connection: x-hop\r\nX-Hop: 1\r\nX-Request-Id: 2\r\n\r\n"
    engine = vllm(raw(head % len(packed) + hop + packed))
    gateway = await start({"b1": engine})
    reply = await gateway.chat()
    assert reply.json == answer
    assert "content-encoding" not in reply.headers
    assert int(reply.headers["content-length"]) == len(reply.body)
    assert "x-hop" not in reply.headers
    assert reply.headers["x-request-id"] == "2"
    assert engine.asked[0].values("accept-encoding") in ([], ["identity"])


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd", "br"])
async def test_p2_a_compressed_request_reaches_the_engine_as_the_plain_one_does(start: Start, coding: str) -> None:
    plain = json.dumps(chat("hello " * 100)).encode()
    packed = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd, "br": brotli.compress}[coding](plain)
    engine = vllm(says("ok"))
    gateway = await start({"b1": engine})
    assert (await gateway.ask(plain)).status == 200
    assert (await gateway.ask(packed, content_encoding=coding)).status == 200
    assert engine.asked[0].body == engine.asked[1].body
    assert engine.asked[1].values("content-encoding") == []


async def test_p2_a_few_bytes_that_unpack_to_many_are_refused_fast(start: Start) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    gateway = await start({"b1": vllm()}, server="limits: {body: 2MiB}")
    began = clock.monotonic()
    assert (await gateway.ask(bomb, content_encoding="gzip")).status == 413
    assert clock.monotonic() - began < 1


def zstd(data: bytes) -> bytes:
    """A frame of raw blocks: what any zstd decoder reads, without a compressor."""
    blocks = [data[at : at + 65536] for at in range(0, len(data), 65536)]
    frame = b"\x28\xb5\x2f\xfd\x00\x58"
    for number, block in enumerate(blocks):
        last = number == len(blocks) - 1
        frame += (len(block) << 3 | last).to_bytes(3, "little") + block
    return frame


async def test_p5_two_lengths_and_a_length_beside_chunks_are_refused_and_the_engine_sees_nothing(start: Start) -> None:
    engine = vllm()
    gateway = await start({"b1": engine})
    for framing in ("content-length: 5\r\ntransfer-encoding: chunked", "content-length: 5\r\ncontent-length: 6"):
        client = await gateway.connect()
        await client.send(f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n{framing}\r\n\r\n0\r\n\r\n".encode())
        reply = await client.reply()
        assert reply.status == 400
        assert reply.error["type"] == "invalid_request_error"
        assert await client.ended()
    assert engine.asked == []


async def test_p6_a_client_is_invited_to_send_its_body_only_when_it_will_be_read(start: Start) -> None:
    gateway = await start(
        {"b1": vllm(says("ok"))}, rest="auth: {keys: [{name: k, key: right-key}]}", server="limits: {body: 64MiB}"
    )
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\nauthorization: Bearer {}\r\n"
    client = await gateway.connect()
    await client.send(f"{head.format('wrong-key')}content-length: 50000000\r\n\r\n".encode())
    status, headers, _ = await client.head()
    assert status == 401
    assert headers["connection"] == "close"
    client = await gateway.connect()
    body = json.dumps(chat()).encode()
    await client.send(f"{head.format('right-key')}content-length: {len(body)}\r\n\r\n".encode())
    assert (await client.head())[0] == 100
    await client.send(body)
    assert (await client.reply()).status == 200


SPELLINGS = ["/v1/chat/completions", "/chat/completions", "/v1/v1/chat/completions", "//v1//chat/completions/"]


@pytest.mark.parametrize("path", [*SPELLINGS, "/v1/chat/completions?x=1"])
async def test_p7_every_spelling_of_the_base_url_works_without_a_redirect(start: Start, path: str) -> None:
    engine = vllm(says("ok"))
    gateway = await start({"b1": engine})
    assert (await gateway.ask(chat(), path)).status == 200
    assert engine.asked[0].line == "POST /v1/chat/completions HTTP/1.1"


async def test_p7_an_api_that_is_not_served_is_404_and_names_what_is(start: Start) -> None:
    gateway = await start({"b1": vllm()})
    for path in ("/v1/fine_tuning/jobs", "/nonsense"):
        reply = await gateway.ask({}, path)
        assert (reply.status, reply.error["code"]) == (404, "not_found")
        assert "/v1/chat/completions" in reply.error["message"]


async def test_p3_an_engine_that_closes_idle_connections_is_no_clients_trouble(start: Start) -> None:
    engine = llama_cpp(says("ok"))
    engine.idle_close_s = 0.03
    gateway = await start({"b1": engine})
    for _ in range(60):
        assert (await gateway.chat(model="smollm2")).status == 200
        await asyncio.sleep(0.03)
    assert len(engine.asked) == 60  # none was executed twice


async def test_requests_on_one_client_connection_follow_each_other(start: Start) -> None:
    engine = vllm(says("ok"))
    gateway = await start({"b1": engine})
    client = await gateway.connect()
    body = json.dumps(chat()).encode()
    for _ in range(5):
        assert (await client.request("POST", "/v1/chat/completions", body)).status == 200
    assert len({request.connection for request in engine.asked}) == 1


async def test_an_upload_that_an_engine_does_not_read_is_not_waited_for_after_the_client_left(start: Start) -> None:
    async def deaf(_request: Request, wire: Wire) -> None:
        await wire.gone()

    engine = vllm(deaf, window=4_000_000, pool=8_000_000)
    engine.read_body = False
    gateway = await start({"b1": engine}, b1={"queued_prefill": "600s"})
    client = await gateway.send(body_of(3_000_000))
    await engine.asked_for(1)
    client.close()
    await gateway.idle(2)


async def test_a_body_of_megabytes_reaches_the_engine_byte_for_byte_but_for_the_edits(start: Start) -> None:
    engine = vllm(says("ok"), window=8_000_000, pool=16_000_000)
    gateway = await start({"b1": engine}, b1={"queued_prefill": "6000s"})
    text = "some words, again and again; " * 220_000
    for more in ({}, {"priority": 3, "stream": True, "max_tokens": 7}):
        body = json.dumps({"model": "tiny", **more, "messages": [{"role": "user", "content": text}]}).encode()
        assert len(body) > 4 << 20
        reply = await gateway.ask(body)
        assert reply.status == 200, reply.body
        sent = json.loads(engine.asked[-1].body)
        assert sent["messages"] == [{"role": "user", "content": text}]
        assert "priority" not in sent
        assert b'"messages": [{"role": "user", "content": "some words, again' in engine.asked[-1].body


@pytest.mark.parametrize("members", [1_001, 500_000])
async def test_a_body_of_very_many_members_is_refused(start: Start, members: int) -> None:
    gateway = await start({"b1": vllm()})
    body = json.dumps({"model": "tiny", "messages": [], **{f"k{i}": 1 for i in range(members)}}).encode()
    asked = asyncio.create_task(gateway.ask(body.replace(b"[]", b'[{"role": "user", "content": "a"}]')))
    slowest = 0.0
    while not asked.done():
        before = clock.monotonic()
        assert (await gateway.get("/health/live")).status == 200
        slowest = max(slowest, clock.monotonic() - before)
    assert (asked.result().status, asked.result().error["code"]) == (400, "too_many_members")
    assert slowest < 0.5

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.shell.engine_double import says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import Running, chat

GOOD = [{"role": "user", "content": "x"}]


async def still_serves(gateway: Running) -> None:
    """Nothing was lost: the next request on a new connection works."""
    assert (await gateway.chat()).status == 200


def raw_body(text: str) -> bytes:
    return ('{"model":"tiny","messages":[{"role":"user","content":"x"}],' + text + "}").encode()


BODIES: dict[str, tuple[bytes, int]] = {
    "nothing": (b"", 400),
    "no JSON": (b"hello", 400),
    "half a body": (b'{"model":"tiny","messages":[', 400),
    "an array": (b"[]", 400),
    "null": (b"null", 400),
    "two values": (json.dumps(chat()).encode() + b"{}", 400),
    "not UTF-8": (b'{"model":"tiny","messages":[{"role":"user","content":"\xff\xfe"}]}', 400),
    "deep nesting": (raw_body('"x":' + "[" * 100_000 + "]" * 100_000), 400),
    "deep nesting in a message": (
        b'{"model":"tiny","messages":' + b'[{"content":' * 5000 + b"1" + b"}]" * 5000 + b"}",
        400,
    ),
    "NaN": (raw_body('"temperature":NaN'), 400),
    "Infinity": (raw_body('"temperature":Infinity'), 400),
    "a number too large": (raw_body('"max_tokens":1e400'), 400),
    "model missing": (json.dumps({"messages": GOOD}).encode(), 400),
    "model a number": (json.dumps({"model": 5, "messages": GOOD}).encode(), 400),
    "messages a string": (json.dumps({"model": "tiny", "messages": "hi"}).encode(), 400),
    "no messages": (json.dumps({"model": "tiny", "messages": []}).encode(), 400),
    "a message that is none": (json.dumps({"model": "tiny", "messages": [7]}).encode(), 400),
    "stream a word": (raw_body('"stream":"yes"'), 400),
    "negative max_tokens": (raw_body('"max_tokens":-1'), 400),
    "max_tokens a word": (raw_body('"max_tokens":"many"'), 400),
    "n of nothing": (raw_body('"n":0'), 400),
    "n of thousands": (raw_body('"n":100000'), 400),
    "unknown model": (json.dumps(chat(model="nobody")).encode(), 404),
    "model of a mebibyte": (json.dumps(chat(model="m" * 1_000_000)).encode(), 404),
    "half an emoji": (b'{"model":"tiny","messages":[{"role":"user","content":"\\ud83d"}]}', 400),
}


@pytest.mark.parametrize("name", BODIES)
async def test_a_bad_body_gets_a_clear_error_and_harms_nothing(start: Start, name: str) -> None:
    body, status = BODIES[name]
    engine = vllm(says("fine"))
    gateway = await start({"b1": engine})
    reply = await gateway.ask(body)
    assert reply.status == status
    assert reply.error["type"] == "invalid_request_error"
    assert len(reply.error["message"]) < 600
    assert engine.asked == []
    await still_serves(gateway)


@pytest.mark.parametrize("budget", [10**6, 2**53, 10**30])
async def test_a_huge_max_tokens_is_lowered_or_refused_by_name(start: Start, budget: int) -> None:
    engine = vllm(says("fine"))
    gateway = await start({"b1": engine})
    reply = await gateway.ask(raw_body(f'"max_tokens":{budget}'))
    if reply.status == 200:
        assert engine.body()["max_tokens"] <= 2048
    else:
        assert (reply.status, reply.error["param"]) == (400, "max_tokens")
    await still_serves(gateway)


async def test_a_body_over_the_limit(start: Start) -> None:
    gateway = await start({"b1": vllm(says("fine"))}, server="limits: {body: 1MiB}")
    reply = await gateway.ask(json.dumps(chat("x" * 1_200_000)).encode())
    assert (reply.status, reply.error["code"]) == (413, "body_too_large")
    await still_serves(gateway)


async def test_a_wrong_key_and_none(start: Start) -> None:
    gateway = await start({"b1": vllm(says("fine"))}, rest="auth: {keys: [{name: k, key: the-right-key-1}]}")
    for headers in ({}, {"authorization": "Bearer nope"}, {"authorization": "Basic x"}, {"x_api_key": "nope"}):
        reply = await gateway.ask(chat(), **headers)
        assert (reply.status, reply.error["code"]) == (401, "invalid_api_key")
    assert (await gateway.ask(chat(), authorization="Bearer the-right-key-1")).status == 200


async def test_a_slow_body(start: Start) -> None:
    gateway = await start({"b1": vllm(says("fine"))}, server="limits: {body_read: 200ms}")
    client = await gateway.connect()
    await client.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{")
    reply = await client.reply()
    assert (reply.status, reply.error["code"]) == (408, "body_timeout")
    assert await client.ended()
    await still_serves(gateway)


def post(*fields: str, body: bytes = b"") -> bytes:
    return "\r\n".join(("POST /v1/chat/completions HTTP/1.1", "host: x", *fields, "", "")).encode() + body


RAW: dict[str, tuple[bytes, int]] = {
    "two lengths": (post("content-length: 1", "content-length: 2", body=b"{}"), 400),
    "length and chunks": (post("content-length: 4", "transfer-encoding: chunked", body=b"0\r\n\r\n"), 400),
    "a chunk that is none": (post("transfer-encoding: chunked", body=b"zz\r\n\r\n"), 400),
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", 400),
    "a header of 40 KB": (b"GET /v1/models HTTP/1.1\r\nhost: x\r\nx-long: " + b"a" * 40_000 + b"\r\n\r\n", 431),
    "an unknown path": (b"GET /nope HTTP/1.1\r\nhost: x\r\n\r\n", 404),
    "an unknown method": (b"BREW /v1/chat/completions HTTP/1.1\r\nhost: x\r\n\r\n", 501),
    "the wrong method": (b"DELETE /v1/chat/completions HTTP/1.1\r\nhost: x\r\n\r\n", 405),
    "an unknown coding": (post("content-encoding: rot13", "content-length: 2", body=b"{}"), 415),
    "damaged gzip": (post("content-encoding: gzip", "content-length: 4", body=b"\x1f\x8b\x00\x00"), 400),
}


@pytest.mark.parametrize("name", RAW)
async def test_bad_http_gets_a_clear_error_and_harms_nothing(start: Start, name: str) -> None:
    sent, status = RAW[name]
    gateway = await start({"b1": vllm(says("fine"))})
    client = await gateway.connect()
    await client.send(sent)
    reply = await client.reply()
    assert reply.status == status
    assert reply.error["message"]
    await still_serves(gateway)


@pytest.mark.parametrize("headers", [{"x_data_label": "top-secret"}, {"x_allow_fallback": "maybe"}])
async def test_a_header_of_ours_with_an_unknown_value_is_named(start: Start, headers: dict[str, str]) -> None:
    gateway = await start({"b1": vllm(says("fine"))})
    reply = await gateway.ask(chat(), **headers)
    assert reply.status == 400
    assert reply.error["param"].replace("-", "_") in headers
    await still_serves(gateway)


async def test_a_label_above_every_clearance_is_refused(start: Start) -> None:
    gateway = await start({"b1": vllm(says("fine"))}, b1={"clearance": "internal"})
    reply = await gateway.ask(chat(), x_data_label="restricted")
    assert (reply.status, reply.error["code"]) == (403, "outside_data_boundary")
    await still_serves(gateway)


async def test_a_thousand_odd_bodies_at_once_leave_the_gateway_as_it_was(start: Start) -> None:
    gateway = await start({"b1": vllm(says("fine"))})
    bodies: list[Any] = [body for body, _ in BODIES.values() if len(body) < 10_000]

    async def one_client() -> None:
        client = await gateway.connect()
        for body in bodies:
            reply = await client.request("POST", "/v1/chat/completions", body)
            assert 400 <= reply.status < 500
            if reply.headers.get("connection") == "close":
                client = await gateway.connect()

    await asyncio.gather(*(one_client() for _ in range(20)))
    await still_serves(gateway)

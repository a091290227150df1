"""Methods that no server knows, as JSON with what is known here; what is no HTTP at all stays a bad request."""

from __future__ import annotations

import pytest

from tests.edge.conftest import Door


@pytest.mark.parametrize(
    "line", [b"BREW /v1/models HTTP/1.1", b"get / HTTP/1.1", b"X-Y! /v1/chat/completions HTTP/1.0"]
)
async def test_an_unknown_method_is_not_implemented(door: Door, line: bytes) -> None:
    client = await door.connect()
    await client.send(line + b"\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}")
    reply = await client.reply()
    assert (reply.status, reply.error["code"]) == (501, "method_not_implemented")
    assert reply.headers["allow"] == "GET, HEAD, POST, DELETE, OPTIONS"
    assert await client.ended()
    assert door.gateway.seen == []


@pytest.mark.parametrize("start", [b"{}\r\n\r\n", b"\x16\x03\x01\x02\r\n\r\n", b"0\r\n\r\n", b"BREW\r\n\r\n"])
async def test_what_is_no_http_has_no_method(door: Door, start: bytes) -> None:
    client = await door.connect()
    await client.send(start)
    reply = await client.reply()
    assert reply.status == 400
    assert "allow" not in reply.headers
    assert await client.ended()

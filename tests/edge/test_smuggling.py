"""Framing that two parsers might read in two ways: refused whole, and nothing after it is taken for a request."""

from __future__ import annotations

import asyncio

import pytest

from tests.edge.conftest import Door

HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
INNER = b"POST /v1/embeddings HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"
CHUNKS = b"0\r\n\r\n"

REFUSED = {
    "two lengths": b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(INNER),
    "two equal lengths": b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n" + CHUNKS,
    "a list of lengths": b"Content-Length: 5, 5\r\n\r\n" + CHUNKS,
    "length and chunks": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    "chunks and length": b"Transfer-Encoding: chunked\r\nContent-Length: %d\r\n\r\n" % (5 + len(INNER)) + CHUNKS,
    "a signed length": b"Content-Length: +0\r\n\r\n",
    "a length in hexadecimal": b"Content-Length: 0x0\r\n\r\n",
    "a length with an underscore": b"Content-Length: 1_0\r\n\r\n0123456789",
    "a space before the colon": b"Content-Length: 0\r\nTransfer-Encoding : chunked\r\n\r\n",
    "a tab before the colon": b"Content-Length: 0\r\nTransfer-Encoding\t: chunked\r\n\r\n",
    "a folded field": b"Content-Length: 0\r\nTransfer-Encoding:\r\n chunked\r\n\r\n",
    "chunked and more": b"Transfer-Encoding: chunked, identity\r\n\r\n" + CHUNKS,
    "chunked twice": b"Transfer-Encoding: chunked, chunked\r\n\r\n" + CHUNKS,
    "two transfer codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + CHUNKS,
    "not quite chunked": b"Transfer-Encoding: xchunked\r\n\r\n" + CHUNKS,
    "a NUL in a value": b"X-A: a\0b\r\nContent-Length: 0\r\n\r\n",
    "a bare CR in a value": b"X-A: a\rTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
    "a signed chunk": b"Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n",
    "a chunk in 0x": b"Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n",
    "a chunk of a negative length": b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    "a chunk longer than it says": b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n" + CHUNKS,
    "a chunk length of 20 digits": b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 20 + b"\r\n\r\n",
    "a line feed in a chunk extension": b"Transfer-Encoding: chunked\r\n\r\n2;a\nb\r\n{}\r\n" + CHUNKS,
}


@pytest.mark.parametrize("name", REFUSED)
async def test_p5_ambiguous_framing_is_refused_and_nothing_behind_it_is_read(door: Door, name: str) -> None:
    client = await door.connect()
    await client.send(HEAD + REFUSED[name] + INNER)
    reply = await client.reply()
    assert reply.status in (400, 501), name
    assert reply.error["type"] == "invalid_request_error"
    assert await client.ended()
    await asyncio.sleep(0)
    assert door.gateway.seen == []

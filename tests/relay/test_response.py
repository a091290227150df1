from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.relay.response import HEAD_LIMIT, ResponseReader

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: 1\r\n\r\n"
)
SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + SIZED


def read(reader: ResponseReader, data: bytes, cuts: list[int]) -> tuple[str | None, bytes]:
    body = b""
    borders = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, end in pairwise(borders):
        fault = reader.feed(data[start:end])
        body += b"".join(reader.parts)
        reader.parts.clear()
        if fault is not None:
            return fault, body
    return None, body


@given(st.sampled_from([CHUNKED, SIZED, INTERIM]), st.lists(st.integers(0, 400), max_size=12))
def test_cut_anywhere(message: bytes, cuts: list[int]) -> None:
    reader = ResponseReader()
    for _ in range(3):  # one connection, one answer after another
        reader.next()
        assert read(reader, message, cuts) == (None, b"hello world")
        assert reader.complete
        assert reader.keep
        assert reader.framed
        assert reader.status == 200


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: 5\r\nContent-Length: 5\r\n",
        b"Content-Length: 5, 5\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: 0x5\r\n",
        b"Content-Length: -5\r\n",
        b"Transfer-Encoding: gzip\r\n",
        b"Transfer-Encoding: chunked, gzip\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        b"Content-Length : 5\r\n",
        b"A: b\r\n folded: c\r\nContent-Length: 5, 5\r\n",
        b"A\x00: b\r\n",
    ],
)
def test_ambiguous_framing_is_refused(head: bytes) -> None:
    reader = ResponseReader()
    assert reader.feed(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n0\r\n\r\n") is not None
    assert not reader.keep


@pytest.mark.parametrize(
    "body",
    [
        b"5\r\nhelloX\r\n0\r\n\r\n",
        b"G\r\n",
        b"-1\r\n",
        b"5\nhello\r\n0\r\n\r\n",
        b"fffffffffffffffff\r\n",
        b"5 \r\nhello\r\n",
    ],
)
def test_bad_chunks_are_refused(body: bytes) -> None:
    reader = ResponseReader()
    assert reader.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body) is not None


@pytest.mark.parametrize(
    "garbage", [b"HTTP/2 200\r\n\r\n", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 2x0 OK\r\n"]
)
def test_what_is_not_http_is_refused(garbage: bytes) -> None:
    assert ResponseReader().feed(garbage) is not None


def test_a_switch_of_protocols_is_refused() -> None:
    head = b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    assert ResponseReader().feed(head) is not None


def test_a_long_head_is_refused_at_once_and_in_small_pieces() -> None:
    line = b"X: " + b"y" * 1000 + b"\r\n"
    whole = b"HTTP/1.1 200 OK\r\n" + line * 70 + b"Content-Length: 0\r\n\r\n"
    assert len(whole) > HEAD_LIMIT
    assert "longer than" in str(ResponseReader().feed(whole))
    reader = ResponseReader()
    faults = [reader.feed(line if number else b"HTTP/1.1 200 OK\r\n") for number in range(80)]
    assert faults[0] is None
    assert any(fault is not None for fault in faults)


def test_a_head_below_the_limit_with_a_long_body_in_one_read_is_fine() -> None:
    reader = ResponseReader()
    assert reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200000) is None
    assert reader.complete


def test_endless_trailers_are_refused() -> None:
    reader = ResponseReader()
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
    assert reader.feed(head + b"T: 1\r\n" * 100) is not None


@pytest.mark.parametrize("extra", [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"garbage"])
def test_bytes_after_an_answer_spoil_the_connection_not_the_answer(extra: bytes) -> None:
    reader = ResponseReader()
    assert read(reader, SIZED + extra, []) == (None, b"hello world")
    assert reader.complete
    assert not reader.keep


@pytest.mark.parametrize(
    ("message", "framed", "keep", "complete"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nabc", False, False, False),
        (b"HTTP/1.0 200 OK\r\n\r\nabc", False, False, False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", True, False, True),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc", True, True, True),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc", True, False, True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True, True, True),
    ],
)
def test_how_a_body_ends(message: bytes, framed: bool, keep: bool, complete: bool) -> None:
    reader = ResponseReader()
    assert reader.feed(message) is None
    assert (reader.framed, reader.keep, reader.complete) == (framed, keep, complete)

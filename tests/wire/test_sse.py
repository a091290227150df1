from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import StreamBroken
from gateway.wire.sse import Framer, data_of, fields
from tests.recordings import streams

STREAMS = streams()
BODIES = [body for _, body in STREAMS]
MIXED = (
    b"\xef\xbb\xbfdata: one\n\n: comment\r\n\r\ndata: two\rdata: more\r\rdata:three\r\n\r\n\r\n"
    b'event: x\ndata: {"a":\ndata: "\xe4\xbd\xa0\xe5\xa5\xbd"}\n\nid: 7\nretry: 10\n\n\n\ndata: last\n\n'
)


def framed(parts: list[bytes]) -> tuple[list[bytes], bytes]:
    framer = Framer()
    events = [event for part in parts for event in framer.feed(part)]
    return events + framer.end(), framer.tail


@pytest.mark.parametrize("body", [*BODIES[:4], MIXED], ids=[*(name for name, _ in STREAMS[:4]), "mixed"])
def test_a_cut_at_any_byte_changes_nothing(body: bytes) -> None:  # test_recordings.py has all the others
    whole = framed([body])
    assert b"".join(whole[0]) + whole[1] == body
    assert whole[0]
    for at in range(len(body) + 1):
        assert framed([body[:at], body[at:]]) == whole


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_every_line_ending_byte_by_byte(ending: bytes) -> None:
    body = b"".join(body.replace(b"\n", ending) for body in BODIES[:6]) + MIXED
    assert framed([bytes([byte]) for byte in body]) == framed([body])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"data: x", b": c", b"\xe4", b"\xbd\xa0"]), max_size=30), st.data()
)
def test_any_bytes_in_any_cuts_give_the_same_events(pieces: list[bytes], data: st.DataObject) -> None:
    body = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    parts = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    events, tail = framed(parts)
    assert (events, tail) == framed([body])
    assert b"".join(events) + tail == body


def test_one_event_a_read_comes_out_at_once() -> None:
    framer = Framer()
    for event in framed([BODIES[0]])[0]:
        assert framer.feed(event) == [event]


def test_a_character_cut_in_the_middle_stays_whole() -> None:
    event = 'data: {"content":"你好"}\n\n'.encode()
    at = event.index("你".encode()) + 4
    framer = Framer()
    assert framer.feed(event[:at]) == []
    assert framer.tail == event[:at]
    assert framer.feed(event[at:]) == [event]
    assert framer.tail == b""


def test_a_700_kib_event_passes_whole() -> None:
    event = b'data: {"arguments":"' + b"x" * (700 * 1024) + b'"}\n\n'
    framer = Framer()
    parts = [event[at : at + 1400] for at in range(0, len(event), 1400)]
    assert [found for part in parts for found in framer.feed(part)] == [event]


def test_an_endless_event_is_refused() -> None:
    framer = Framer(limit=1000)
    assert framer.feed(b"data: " + b"x" * 900) == []
    with pytest.raises(StreamBroken):
        framer.feed(b"x" * 200)


def test_the_limit_is_for_one_event_not_for_the_stream() -> None:
    framer = Framer(limit=100)
    assert sum(len(framer.feed(b"data: " + b"x" * 60 + b"\n\n")) for _ in range(50)) == 50


@pytest.mark.parametrize(
    ("event", "data"),
    [
        (b"data: {}\n\n", b"{}"),
        (b"data:{}\n\n", b"{}"),
        (b"data:  two spaces\r\n\r\n", b" two spaces"),
        (b"data: a\ndata: b\n\n", b"a\nb"),
        (b"event: x\rdata: a\r\r", b"a"),
        (b"\xef\xbb\xbfdata: a\n\n", b"a"),
        (b"\ndata: a\n\n", b"a"),
        (b"data: [DONE]\n\n", b"[DONE]"),
        (b"data:\n\n", b""),
        (b": ping\n\n", None),
        (b":\n\n", None),
        (b"retry: 3\n\n", None),
        (b"\n\n", None),
        (b"database: 1\n\n", None),
        (b'{"error":{}}', None),
    ],
)
def test_data_lines(event: bytes, data: bytes | None) -> None:
    assert data_of(event) == data


def test_other_fields() -> None:
    assert fields(b"event: error\nerror: {}\ndata: x\n\n", b"error") == [b"{}"]
    assert fields(b"error: a\r\nerror:b\r\n\r\n", b"error") == [b"a", b"b"]

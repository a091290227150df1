from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import StreamBroken
from gateway.wire.ollama.lines import LineFramer, data_of
from tests.wire.ollama.samples import FILES, cuts, framed


@pytest.mark.parametrize("name", FILES)
def test_lines_cut_at_any_byte_are_the_same(name: str) -> None:
    body = FILES[name]
    expected = [line + b"\n" for line in body.split(b"\n")[:-1]]
    assert framed([body]) == expected
    assert all(framed(parts) == expected for parts in cuts(body))
    ends = body.replace(b"\n", b"\r\n")
    assert all(framed(parts) == [line[:-1] + b"\r\n" for line in expected] for parts in cuts(ends)[::7])


@given(st.lists(st.binary(max_size=12)), st.sampled_from([b"\n", b"\r\n", b"\n\n", b""]))
def test_nothing_is_lost_or_added(parts: list[bytes], between: bytes) -> None:
    framer = LineFramer()
    pieces = [part + between for part in parts]
    lines = [line for piece in pieces for line in framer.feed(piece)]
    assert b"".join(lines) + framer.tail == b"".join(pieces)
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)


def test_the_bodys_end_completes_an_object_only() -> None:
    for left, whole in ((b'{"done":true}', True), (b'{"done":true} ', True), (b'{"done":tr', False), (b"", False)):
        framer = LineFramer()
        assert framer.feed(b"{}\n" + left) == [b"{}\n"]
        assert framer.end() == ([left] if whole else [])
        assert framer.tail == (b"" if whole else left)
    framer = LineFramer()
    framer.feed(b"\xff{}")
    assert framer.end() == []


def test_a_line_over_the_limit_breaks_the_stream() -> None:
    framer = LineFramer(limit=8)
    assert framer.feed(b"12345678") == []
    with pytest.raises(StreamBroken):
        framer.feed(b"9")
    assert LineFramer(limit=8).feed(b"123456789\n1234\n") == [b"123456789\n", b"1234\n"]


def test_blank_lines_have_no_data() -> None:
    assert data_of(b"\r\n") is None
    assert data_of(b' {"a":1}\r\n') == b'{"a":1}'

"""What real engines sent, cut anywhere: the client gets the same bytes, with another name for the model."""

from __future__ import annotations

import json
import random

import pytest

from gateway.wire.answer import read_answer
from gateway.wire.chat_stream import ChatStream
from gateway.wire.sse import Framer
from gateway.wire.stream_view import EventKind
from gateway.wire.top_level import TopLevel
from tests.recordings import answers, native_streams, streams

ALIAS = "code"
EVERY_BYTE = 1_536
"""Bytes from the start in which each border is tried; past them, and for several borders at once, random ones."""
chunks = pytest.mark.parametrize(("name", "body"), streams(), ids=[name for name, _ in streams()])
native = pytest.mark.parametrize(("name", "body"), native_streams(), ids=[name for name, _ in native_streams()])
whole = pytest.mark.parametrize(("name", "body"), answers(), ids=[name for name, _ in answers()])


def framed(parts: list[bytes]) -> list[bytes]:
    framer = Framer()
    events = [event for part in parts for event in framer.feed(part)]
    return [*events, *framer.end(), framer.tail]


def borders(body: bytes, name: str) -> list[list[int]]:
    chance = random.Random(name)
    several = [sorted(chance.choices(range(len(body) + 1), k=chance.randint(2, 12))) for _ in range(40)]
    step = 5 if name.startswith("pair") else 1  # these are many, and alike
    return [[at] for at in range(0, min(len(body), EVERY_BYTE) + 1, step)] + several


def cut(body: bytes, at: list[int]) -> list[bytes]:
    return [body[start:end] for start, end in zip([0, *at], [*at, len(body)], strict=True)]


def shown(name: str, parts: list[bytes]) -> tuple[bytes, list[EventKind], str | None]:
    surface = "completions" if "completions" in name else "chat"
    choices = 2 if "n2" in name or "list" in name else 1
    stream = ChatStream(surface, model_alias=ALIAS, choices=choices)
    found = [stream.see(event) for event in framed(parts) if event]
    return b"".join(one.forward for one in found), [one.kind for one in found], stream.finish_reason


@chunks
def test_a_stream_cut_at_any_byte_shows_the_same(name: str, body: bytes) -> None:
    events, expected = framed([body]), shown(name, [body])
    for at in borders(body, name):
        assert framed(cut(body, at)) == events  # the events are the same, and so is what is made of them
    for at in borders(body, name)[:: max(1, len(body) // 30)]:
        assert shown(name, cut(body, at)) == expected
    assert expected[0] or expected[1] == [EventKind.ERROR]
    assert expected[1][-1] in (EventKind.DONE, EventKind.ERROR)


@chunks
def test_a_stream_byte_by_byte_and_with_other_line_ends_shows_the_same(name: str, body: bytes) -> None:
    expected = shown(name, [body])
    assert shown(name, [bytes([byte]) for byte in body]) == expected
    ends = body.replace(b"\n", b"\r\n")
    text, kinds, reason = shown(name, cut(ends, [len(ends) // 3, len(ends) // 2]))
    assert (text.replace(b"\r\n", b"\n"), kinds, reason) == expected


@native
def test_a_native_stream_cut_at_any_byte_has_the_same_events(name: str, body: bytes) -> None:
    events = framed([body])
    assert len(events) > 5
    assert b"".join(events) == body
    for at in borders(body, name):
        assert framed(cut(body, at)) == events


@whole
def test_an_answer_in_any_pieces_gets_the_clients_name(name: str, body: bytes) -> None:
    def walked(parts: list[bytes]) -> tuple[bytes, dict[str, bytes]]:
        walk = TopLevel({"model": json.dumps(ALIAS).encode()}, ("usage",))
        return b"".join([walk.feed(part) for part in parts]), walk.captured

    text, captured = expected = walked([body])
    assert walked([bytes([byte]) for byte in body]) == expected
    for at in borders(body, name)[:: max(1, len(body) // 30)]:
        assert walked(cut(body, at)) == expected
    old, new = json.loads(body), json.loads(text)
    if isinstance(old, dict) and old.get("model") is not None:
        assert new.pop("model") == ALIAS
        old.pop("model")
    else:
        assert text == body
    assert new == old
    assert captured.keys() == ({"usage"} & old.keys() if isinstance(old, dict) else set())
    as_a_whole = read_answer(body, ALIAS)
    assert as_a_whole is None or as_a_whole.body == text


def test_every_kind_of_answer_is_recorded() -> None:
    text = b"\n".join(body for _, body in [*streams(), *answers(), *native_streams()])
    for kind in (
        b'"logprobs":{',
        b'"tool_calls":[',
        b'"reasoning":"',
        b'"reasoning_content":"',
        b'"index":1',
        b'"prompt_logprobs":[',
        b'"timings":{',
        b'"cached_tokens":',
        b"Context size has been exceeded",
        b"exceed_context_size_error",
        b'"embedding":[',
        b'"relevance_score":',
        b'"object":"response"',
        b'"type":"message"',
        b'"text_completion"',
        b"\n\n:\n\n",
    ):
        assert kind in text, kind

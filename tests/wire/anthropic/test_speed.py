"""Bounds with three times the slack measured on slow shared cores; the best of several runs counts."""

from __future__ import annotations

import json

from gateway.wire.anthropic.request_to_chat import Asked, to_chat
from gateway.wire.anthropic.stream import MessagesStream
from gateway.wire.anthropic.stream_from_chat import MessageWriter
from gateway.wire.sse import data_of
from gateway.wire.translation import Stamp
from tests.recordings import recording
from tests.wire.anthropic.checked import frames
from tests.wire.test_speed import CODE, best_seconds

EVENTS = 1000


def test_a_middle_event_costs_microseconds() -> None:
    middle = frames(recording("anthropic", "llama_cpp_stream").body)[3]
    stream = MessagesStream("alias")

    def many() -> None:
        for _ in range(EVENTS):
            assert stream.see(middle).token

    assert best_seconds(many) / EVENTS < 5e-6


def test_a_translated_chunk_costs_microseconds() -> None:
    middle = data_of(frames(recording("llama.cpp", "chat_stream_usage").body)[3]) or b""
    writer = MessageWriter(Asked(), Stamp("abc123", 0, "alias", stream=True))
    assert b"message_start" in writer.feed(middle)

    def many() -> None:
        for _ in range(EVENTS):
            assert writer.feed(middle)

    assert best_seconds(many) / EVENTS < 15e-6


def test_a_megabyte_of_messages_is_translated_in_milliseconds() -> None:
    turns = [
        {"role": ("user", "assistant")[at % 2], "content": [{"type": "text", "text": CODE * 2}]} for at in range(1200)
    ]
    body = json.dumps({"model": "m", "max_tokens": 5, "messages": turns}, ensure_ascii=False).encode()
    assert len(body) > 1_000_000
    assert best_seconds(lambda: to_chat(body)) < 0.06

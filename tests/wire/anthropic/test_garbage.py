"""Odd bodies from clients and garbage from engines: the right error each time, and never another."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import MalformedRequest, StreamBroken
from gateway.wire.anthropic import answer_from_chat, answer_to_chat
from gateway.wire.anthropic.assemble import MessageAssembler
from gateway.wire.anthropic.request_from_chat import from_chat
from gateway.wire.anthropic.request_to_chat import Asked, to_chat
from gateway.wire.anthropic.stream import MessagesStream
from gateway.wire.anthropic.stream_from_chat import MessageWriter
from gateway.wire.anthropic.stream_to_chat import ChatWriter
from gateway.wire.anthropic.whole import read_answer
from gateway.wire.chat_request import parse_chat
from gateway.wire.chat_wanted import Wanted
from gateway.wire.sse import Framer, data_of
from gateway.wire.translation import Stamp
from tests.recordings import FOLDER, recording
from tests.wire.variants import variants

STAMP = Stamp("abc123", 1_764_000_000, "alias")
REQUEST: dict[str, Any] = {
    "model": "m",
    "max_tokens": 5,
    "temperature": 0.5,
    "stop_sequences": ["a"],
    "stream": True,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}},
    "system": [{"type": "text", "text": "s"}],
    "tools": [{"name": "run", "description": "d", "input_schema": {"type": "object"}, "strict": True}],
    "tool_choice": {"type": "tool", "name": "run", "disable_parallel_tool_use": True},
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "x"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "eA=="}},
                {
                    "type": "document",
                    "title": "t",
                    "source": {"type": "content", "content": [{"type": "text", "text": "y"}]},
                },
                {"type": "search_result", "title": "t", "source": "s", "content": [{"type": "text", "text": "y"}]},
            ],
        },
        {"role": "system", "content": "n"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "s"},
                {"type": "tool_use", "id": "t", "name": "run", "input": {"a": 1}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r", "is_error": True}]},
    ],
}
CHAT_REQUEST: dict[str, Any] = {
    "model": "m",
    "max_tokens": 5,
    "temperature": 0.5,
    "stop": ["a"],
    "stream": True,
    "stream_options": {"include_usage": True},
    "n": 1,
    "logprobs": False,
    "modalities": ["text"],
    "reasoning_effort": "low",
    "parallel_tool_calls": False,
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
    "tools": [{"type": "function", "function": {"name": "run", "description": "d", "parameters": {"type": "object"}}}],
    "tool_choice": {"type": "function", "function": {"name": "run"}},
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": "s"}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "x"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,eA==", "filename": "f"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "r"},
        {"role": "assistant", "content": "x "},
    ],
}


@pytest.mark.parametrize(("valid", "make"), [(REQUEST, to_chat), (CHAT_REQUEST, from_chat)])
def test_every_odd_body_is_translated_or_refused_by_name(valid: Any, make: Callable[[bytes], Any]) -> None:
    assert make(json.dumps(valid).encode()).lost == ()
    refused: list[tuple[Any, str | None]] = []
    for body in variants(valid):
        text = json.dumps(body).encode()
        try:
            made = make(text)
        except MalformedRequest as error:
            refused.append((body, error.param))
            continue
        json.loads(made.body)
        if make is to_chat:
            with contextlib.suppress(MalformedRequest):
                parse_chat(made.body)
    assert len(refused) > 100
    assert [body for body, param in refused if param is None and isinstance(body, dict)] == []


def feeds(stream: bytes) -> list[bytes]:
    return [data for event in Framer().feed(stream) if (data := data_of(event)) is not None]


def takers() -> list[tuple[str, list[bytes], Callable[[], Callable[[bytes], Any]]]]:
    """Everything that takes an engine's events, with a stream that is fine."""
    message = feeds(recording("anthropic", "documented_tools_stream").body)
    chat = feeds((FOLDER / "llama.cpp" / "pairs" / "chat_tool_calls_two.sse").read_bytes())[:40]

    def assembling() -> Callable[[bytes], Any]:
        assembler = MessageAssembler()

        def take(data: bytes) -> None:
            assembler.feed(b"data: " + data + b"\n\n")
            with contextlib.suppress(StreamBroken):
                assembler.result()

        return take

    def watching() -> Callable[[bytes], Any]:
        stream = MessagesStream("alias")
        return lambda data: stream.see(b"data: " + data + b"\n\n")

    return [
        ("write a message", chat, lambda: MessageWriter(Asked(("x",)), STAMP).feed),
        ("write chat", message, lambda: ChatWriter(Wanted(), STAMP).feed),
        ("assemble", message, assembling),
        ("watch", message, watching),
    ]


@pytest.mark.parametrize(("name", "events", "start"), takers(), ids=[name for name, _, _ in takers()])
def test_events_of_any_shape(name: str, events: list[bytes], start: Callable[[], Callable[[bytes], Any]]) -> None:
    whole = start()
    for event in events:
        whole(event)
    broken = 0
    for number, event in enumerate(events):
        if not event.startswith(b"{"):
            continue
        for odd in variants(json.loads(event)):
            take = start()
            for before in events[:number][:3]:
                take(before)
            try:
                take(json.dumps(odd).encode())
            except StreamBroken:
                broken += 1
    assert broken > 50 or name == "watch"


@pytest.mark.parametrize(("name", "events", "start"), takers(), ids=[name for name, _, _ in takers()])
def test_bytes_that_flip(name: str, events: list[bytes], start: Callable[[], Callable[[bytes], Any]]) -> None:
    roll = random.Random(name)
    for _ in range(400):
        take = start()
        for event in events[:6]:
            spoiled = bytearray(event)
            spoiled[roll.randrange(len(spoiled))] = roll.randrange(256)
            with contextlib.suppress(StreamBroken):
                take(bytes(spoiled))


WHOLE = {
    "content": [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "t", "name": "n", "input": {}}],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 3},
    "model": "m",
}
CHAT_WHOLE = {
    "choices": [
        {
            "message": {
                "content": "x",
                "reasoning": "r",
                "tool_calls": [{"id": "c", "function": {"name": "n", "arguments": "{}"}}],
            },
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}},
}


def test_whole_answers_of_any_shape() -> None:
    for odd in variants(CHAT_WHOLE):
        with contextlib.suppress(StreamBroken):
            json.loads(answer_from_chat.answer(json.dumps(odd).encode(), Asked(("x",)), STAMP))
    for odd in variants(WHOLE):
        text = json.dumps(odd).encode()
        with contextlib.suppress(StreamBroken):
            json.loads(answer_to_chat.answer(text, Wanted(), STAMP))
        read = read_answer(text, "alias")
        assert read is None or json.loads(read.body)


@given(st.binary(max_size=60))
def test_bytes(data: bytes) -> None:
    for request in (to_chat, from_chat):
        with pytest.raises(MalformedRequest):
            request(data)
    for reply in (answer_from_chat.answer, answer_to_chat.answer):
        with pytest.raises(StreamBroken):
            reply(data, None, STAMP)
    assert read_answer(data, "alias") is None
    MessagesStream("alias").see(data + b"\n\n")
    assert MessagesStream("alias").unfinished(data) is None or data.strip().startswith((b"{", b"error:"))


@pytest.mark.parametrize("deep", [b"[" * 100_000, b'{"a":' * 100_000])
def test_nesting_without_end(deep: bytes) -> None:
    for request in (to_chat, from_chat):
        with pytest.raises(MalformedRequest):
            request(b'{"messages":' + deep)
    for reply in (answer_from_chat.answer, answer_to_chat.answer):
        with pytest.raises(StreamBroken):
            reply(deep, None, STAMP)
    with pytest.raises(StreamBroken):
        MessageWriter(None, STAMP).feed(deep)
    with pytest.raises(StreamBroken):
        ChatWriter(None, STAMP).feed(deep)
    assert MessagesStream().see(b"data: " + deep + b"\n\n").error is not None

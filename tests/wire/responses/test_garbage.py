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
from gateway.wire.chat_request import parse_chat
from gateway.wire.chat_wanted import Wanted
from gateway.wire.responses import answer_from_chat, answer_to_chat
from gateway.wire.responses.assemble import ResponseAssembler
from gateway.wire.responses.request_from_chat import from_chat
from gateway.wire.responses.request_to_chat import to_chat
from gateway.wire.responses.stream import ResponsesStream
from gateway.wire.responses.stream_from_chat import ResponseWriter
from gateway.wire.responses.stream_to_chat import ChatWriter
from gateway.wire.responses.whole import read_answer
from gateway.wire.translation import Stamp
from tests.wire.responses.native import LLAMA_TOOLS, OPENAI_TOOLS
from tests.wire.variants import variants

STAMP = Stamp("abc123", 1_764_000_000, "alias")
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": "run", "description": "d", "parameters": {"type": "object"}, "strict": True},
    {"type": "custom", "name": "edit", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
    {"type": "namespace", "name": "n", "description": "d", "tools": [{"type": "function", "name": "f"}]},
    {"type": "local_shell"},
    {"type": "tool_search", "execution": "client", "parameters": {}},
]
REQUEST: dict[str, Any] = {
    "model": "m",
    "max_output_tokens": 5,
    "temperature": 0.5,
    "instructions": "i",
    "stream": True,
    "background": False,
    "reasoning": {"effort": "low", "summary": "auto"},
    "text": {"format": {"type": "json_schema", "name": "n", "strict": True, "schema": {"type": "object"}}},
    "include": ["message.output_text.logprobs"],
    "top_logprobs": 1,
    "parallel_tool_calls": True,
    "tools": TOOLS,
    "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "run"}]},
    "input": [
        {"role": "developer", "content": [{"type": "input_text", "text": "x"}]},
        {
            "role": "user",
            "content": [
                {"type": "input_image", "image_url": "data:x", "detail": "low"},
                {"type": "input_file", "file_data": "data:x", "filename": "f"},
                {"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}},
            ],
        },
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}], "content": None},
        {"type": "function_call", "call_id": "c", "name": "f", "namespace": "n", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "d", "name": "edit", "input": "x"},
        {"type": "local_shell_call", "call_id": "e", "action": {"type": "exec", "command": ["ls"], "env": {}}},
        {"type": "tool_search_call", "call_id": "g", "arguments": {"q": 1}},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "t"}]},
        {"type": "tool_search_output", "call_id": "g", "tools": [{"type": "function", "name": "late"}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "x"}]},
    ],
}
CHAT_REQUEST: dict[str, Any] = {
    "model": "m",
    "max_tokens": 5,
    "temperature": 0.5,
    "stream": True,
    "stream_options": {"include_usage": True},
    "n": 1,
    "logprobs": True,
    "top_logprobs": 1,
    "modalities": ["text"],
    "reasoning_effort": "low",
    "verbosity": "low",
    "parallel_tool_calls": False,
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
    "tools": [
        {"type": "function", "function": {"name": "run", "description": "d", "parameters": {"type": "object"}}},
        {"type": "custom", "custom": {"name": "e", "format": {"type": "grammar", "grammar": {"syntax": "lark"}}}},
    ],
    "tool_choice": {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "run"}}]},
    },
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "x"},
                {"type": "image_url", "image_url": {"url": "data:x", "detail": "low"}},
                {"type": "file", "file": {"file_data": "data:x", "filename": "f"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}},
                {"id": "d", "type": "custom", "custom": {"name": "e", "input": "x"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ],
}
CHAT_EVENTS: list[dict[str, Any]] = [
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "", "refusal": None}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {"reasoning": "a", "content": "b"}, "logprobs": {"content": [{"token": "b"}]}}]},
    {
        "choices": [
            {
                "index": 0,
                "delta": {
                    "tool_calls": [
                        {"index": 0, "id": "c", "function": {"name": "edit", "arguments": '{"input":"x'}},
                        {"index": 1, "id": "d", "function": {"name": "local_shell", "arguments": '{"command":["a"]}'}},
                        {"index": 2, "id": "e", "function": {"name": "tool_search", "arguments": '{"n":NaN}'}},
                    ]
                },
            }
        ]
    },
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    {
        "choices": [],
        "usage": {
            "prompt_tokens": 1,
            "completion_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": 1},
            "completion_tokens_details": {"reasoning_tokens": 1},
        },
        "timings": {"cache_n": 1, "prompt_n": 1, "predicted_n": 2, "prompt_ms": 1.5},
    },
]


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
            ending = ResponseWriter(made.context, STAMP).end()
            json.loads(ending.split(b"data: ")[-1])
    assert len(refused) > 100
    assert [body for body, param in refused if param is None and isinstance(body, dict)] == []


CONTEXT = to_chat(json.dumps(REQUEST).encode()).context


def takers() -> list[tuple[str, list[dict[str, Any]], Callable[[], Callable[[bytes], Any]]]]:
    """Everything that takes an engine's events, with a stream that is fine."""

    def writing() -> Callable[[bytes], Any]:
        writer = ResponseWriter(CONTEXT, STAMP)

        def take(data: bytes) -> None:
            for event in writer.feed(data).split(b"\n\n")[:-1]:
                json.loads(event.split(b"data: ", 1)[1])

        return take

    def ending() -> Callable[[bytes], Any]:
        writer = ResponseWriter(CONTEXT, STAMP)

        def take(data: bytes) -> None:
            writer.feed(data)
            if b"completion_tokens" in data or b"tool_calls" in data:
                json.loads(writer.end().split(b"data: ")[-1])

        return take

    def to_chat_again() -> Callable[[bytes], Any]:
        writer = ChatWriter(Wanted(True), STAMP)

        def take(data: bytes) -> None:
            writer.feed(data)
            if b"completed" in data:
                writer.end()

        return take

    def assembling() -> Callable[[bytes], Any]:
        assembler = ResponseAssembler()

        def take(data: bytes) -> None:
            assembler.feed(b"data: " + data + b"\n\n")
            with contextlib.suppress(StreamBroken):
                json.loads(assembler.result())

        return take

    def watching() -> Callable[[bytes], Any]:
        stream = ResponsesStream("alias")
        return lambda data: stream.see(b"data: " + data + b"\n\n")

    shorter = [*OPENAI_TOOLS[:1], *OPENAI_TOOLS[4:5], *OPENAI_TOOLS[9:10], *OPENAI_TOOLS[14:18], *OPENAI_TOOLS[-3:]]
    return [
        ("write a response", CHAT_EVENTS, writing),
        ("end a response", CHAT_EVENTS, ending),
        ("write chat", shorter, to_chat_again),
        ("write chat of llama.cpp's", LLAMA_TOOLS, to_chat_again),
        ("assemble", shorter, assembling),
        ("watch", shorter, watching),
    ]


@pytest.mark.parametrize(("name", "events", "start"), takers(), ids=[name for name, _, _ in takers()])
def test_events_of_any_shape(
    name: str, events: list[dict[str, Any]], start: Callable[[], Callable[[bytes], Any]]
) -> None:
    whole = start()
    for event in events:
        whole(json.dumps(event).encode())
    broken = 0
    for number, event in enumerate(events):
        for odd in variants(event):
            take = start()
            for before in events[max(0, number - 3) : number]:
                with contextlib.suppress(StreamBroken):  # without the beginning of a call, say
                    take(json.dumps(before).encode())
            try:
                take(json.dumps(odd).encode())
            except StreamBroken:
                broken += 1
    assert broken > 50 or name in ("watch", "assemble")


@pytest.mark.parametrize(("name", "events", "start"), takers(), ids=[name for name, _, _ in takers()])
def test_bytes_that_flip(name: str, events: list[dict[str, Any]], start: Callable[[], Callable[[bytes], Any]]) -> None:
    roll = random.Random(name)
    for _ in range(300):
        take = start()
        for event in events:
            spoiled = bytearray(json.dumps(event).encode())
            spoiled[roll.randrange(len(spoiled))] = roll.randrange(256)
            with contextlib.suppress(StreamBroken):
                take(bytes(spoiled))


CHAT_WHOLE = {
    "choices": [
        {
            "message": {
                "content": "x",
                "reasoning": "r",
                "refusal": "n",
                "tool_calls": [{"id": "c", "function": {"name": "local_shell", "arguments": "{}"}}],
            },
            "logprobs": {"content": [{"token": "x", "logprob": -1.0, "bytes": [1], "top_logprobs": [{"token": "y"}]}]},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}},
}


def test_whole_answers_of_any_shape() -> None:
    for odd in variants(CHAT_WHOLE):
        with contextlib.suppress(StreamBroken):
            json.loads(answer_from_chat.answer(json.dumps(odd).encode(), CONTEXT, STAMP))
    for odd in variants(OPENAI_TOOLS[-1]["response"]):
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
    ResponsesStream("alias").see(data + b"\n\n")
    assert ResponsesStream("alias").unfinished(data) is None or data.strip().startswith((b"{", b"error:", b"event:"))


@pytest.mark.parametrize("deep", [b"[" * 100_000, b'{"a":' * 100_000])
def test_nesting_without_end(deep: bytes) -> None:
    for request in (to_chat, from_chat):
        with pytest.raises(MalformedRequest):
            request(b'{"messages":' + deep)
    for reply in (answer_from_chat.answer, answer_to_chat.answer):
        with pytest.raises(StreamBroken):
            reply(deep, None, STAMP)
    for writer in (ResponseWriter(None, STAMP), ChatWriter(None, STAMP)):
        with pytest.raises(StreamBroken):
            writer.feed(deep)
    assert ResponsesStream().see(b"data: " + deep + b"\n\n").error is not None

"""Whole messages and their streams, as chat clients get them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import StreamBroken
from gateway.wire.anthropic.answer_to_chat import answer
from gateway.wire.anthropic.assemble import MessageAssembler
from gateway.wire.anthropic.stream_to_chat import ChatWriter
from gateway.wire.chat_wanted import Wanted
from gateway.wire.sse import Framer, data_of
from gateway.wire.translation import Stamp
from tests.recordings import recording
from tests.wire.anthropic.checked import chunks, completion, final_completion

STAMP = Stamp("abc123", 1_764_000_000, "alias", stream=True)
STREAMS = ["llama_cpp_stream", "vllm_stream", "documented_tools_stream"]


def written(body: bytes, cut: int | None = None, usage: bool = True) -> bytes:
    framer, writer = Framer(), ChatWriter(Wanted(include_usage=usage), STAMP)
    parts = [body] if cut is None else [body[:cut], body[cut:]]
    found = [event for part in parts for event in framer.feed(part)]
    return b"".join(writer.feed(data) for event in found if (data := data_of(event)) is not None) + writer.end()


def whole(content: list[Any], reason: str | None = "end_turn", **members: Any) -> bytes:
    return json.dumps({"type": "message", "content": content, "stop_reason": reason, **members}).encode()


@pytest.mark.parametrize(
    ("name", "text", "usage", "cached"),
    [
        ("llama_cpp_whole", "In a pinch to be friendly but still", (36, 8, 44), 25),
        ("vllm_whole", " barwait canGet", (20, 4, 24), 0),
    ],
)
def test_a_whole_message(name: str, text: str, usage: tuple[int, int, int], cached: int) -> None:
    told = completion(answer(recording("anthropic", name).body, Wanted(), STAMP))
    assert (told.id, told.model, told.created, told.object) == (
        "chatcmpl-abc123",
        "alias",
        STAMP.created,
        "chat.completion",
    )
    assert (told.choices[0].message.content, told.choices[0].finish_reason) == (text, "length")
    assert told.usage is not None
    assert (told.usage.prompt_tokens, told.usage.completion_tokens, told.usage.total_tokens) == usage
    assert told.usage.prompt_tokens_details is not None
    assert told.usage.prompt_tokens_details.cached_tokens == cached


def test_r1_thinking_is_reasoning() -> None:
    told = json.loads(answer(recording("anthropic", "llama_cpp_thinking").body, Wanted(), STAMP))
    assert told["choices"][0]["message"]["reasoning_content"] == "iti couldn influence"


def test_calls_keep_the_bytes_of_their_input() -> None:
    body = b'{"content":[{"type":"tool_use","id":"t","name":"run","input":{"z" : 1.0}}],"stop_reason":"tool_use"}'
    told = completion(answer(body, Wanted(), STAMP)).choices[0]
    assert (told.finish_reason, told.message.content) == ("tool_calls", None)
    assert told.message.tool_calls is not None
    (call,) = told.message.tool_calls
    assert (call.id, call.type) == ("t", "function")
    assert call.type == "function"
    assert call.function.arguments == '{"z" : 1.0}'


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("something_new", "stop"),
        (None, "stop"),
    ],
)
def test_finish_reasons(reason: str | None, finish: str) -> None:
    assert completion(answer(whole([], reason), Wanted(), STAMP)).choices[0].finish_reason == finish


def test_blocks_of_tools_that_ran_there_are_left_out() -> None:
    blocks = [
        {"type": "text", "text": "a"},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": {"any": "shape"}},
        {"type": "text", "text": "b", "citations": [{}]},
    ]
    assert completion(answer(whole(blocks), Wanted(), STAMP)).choices[0].message.content == "ab"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"content":"x"}',
        b'{"content":[5]}',
        b'{"content":[{"type":"text","text":5}]}',
        b'{"content":[{"type":"tool_use","id":"t","input":{}}]}',
        b'{"content":[],"error":{"message":"m"}}',
        b'{"type":"error","error":{"type":"overloaded_error","message":"m"}}',
    ],
)
def test_what_is_no_message(body: bytes) -> None:
    with pytest.raises(StreamBroken):
        answer(body, Wanted(), STAMP)


@pytest.mark.parametrize("name", STREAMS)
def test_streamed_it_is_the_answer_that_the_whole_message_becomes(name: str) -> None:
    body = recording("anthropic", name).body
    assembler = MessageAssembler()
    for event in Framer().feed(body):
        assembler.feed(event)
    other = completion(answer(assembler.result(), Wanted(), STAMP))
    told = final_completion(written(body))
    one, two = told.choices[0], other.choices[0]
    assert one.finish_reason == two.finish_reason
    assert one.message.content == two.message.content
    calls = [
        [(call.id, call.function.name, call.function.arguments or "{}") for call in message.tool_calls or []]
        for message in (one.message, two.message)
        if all(call.type == "function" for call in message.tool_calls or [])
    ]
    assert calls[0] == calls[1]
    assert told.usage == other.usage


@pytest.mark.parametrize("name", STREAMS)
def test_cut_at_every_byte_it_is_the_same(name: str) -> None:
    body = recording("anthropic", name).body
    assert all(written(body, cut) == written(body) for cut in range(0, len(body), 3))


def test_the_chunks_of_a_stream() -> None:
    told = chunks(written(recording("anthropic", "documented_tools_stream").body))
    assert {one.id for one in told} == {"chatcmpl-abc123"}
    assert told[0].choices[0].delta.role == "assistant"
    assert "".join(getattr(one.choices[0].delta, "reasoning_content", "") for one in told if one.choices) == (
        "The user asks for two readings."
    )
    indices = [call.index for one in told if one.choices for call in one.choices[0].delta.tool_calls or ()]
    assert sorted(set(indices)) == [0, 1]
    assert [one.choices[0].finish_reason for one in told if one.choices][-1] == "tool_calls"


def test_s7_usage_is_shown_to_those_that_asked() -> None:
    body = recording("anthropic", "vllm_stream").body
    assert all(one.choices for one in chunks(written(body, usage=False)))
    assert not chunks(written(body))[-1].choices


def test_an_empty_answer() -> None:
    told = chunks(ChatWriter(Wanted(), STAMP).end())
    assert (told[0].choices[0].delta.role, told[-1].choices[0].finish_reason) == ("assistant", "stop")


def test_input_that_comes_with_the_start_of_its_block() -> None:
    writer = ChatWriter(Wanted(), STAMP)
    block = {"type": "tool_use", "id": "t", "name": "run", "input": {"a": 1}}
    event = {"type": "content_block_start", "index": 0, "content_block": block}
    told = chunks(writer.feed(json.dumps(event).encode()) + writer.end())
    calls = told[1].choices[0].delta.tool_calls
    assert calls is not None
    assert calls[0].function is not None
    assert calls[0].function.arguments == '{"a":1}'
    assert told[-1].choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"type":5}',
        b'{"type":"message_start","message":5}',
        b'{"type":"content_block_start","index":0,"content_block":5}',
        b'{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t"}}',
        b'{"type":"content_block_delta","index":"0"}',
        b'{"type":"content_block_delta","index":0,"delta":{"text":5}}',
        b'{"type":"error","error":{"message":"m"}}',
    ],
)
def test_what_is_no_event(data: bytes) -> None:
    with pytest.raises(StreamBroken):
        ChatWriter(Wanted(), STAMP).feed(data)

"""A response as a chat answer, whole and as a stream."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import StreamBroken
from gateway.wire.chat_wanted import Wanted
from gateway.wire.responses.answer_to_chat import answer
from gateway.wire.responses.stream_to_chat import ChatWriter
from gateway.wire.sse import Framer, data_of
from gateway.wire.translation import Stamp
from tests.recordings import recording
from tests.wire.anthropic.checked import chunks, completion, final_completion
from tests.wire.responses.checked import stream_of
from tests.wire.responses.native import LLAMA_TOOLS, OPENAI_TOOLS, response_of

STAMP = Stamp("abc123", 1_764_000_000, "alias", True)


def written(body: bytes, *, usage: bool = True) -> bytes:
    writer = ChatWriter(Wanted(usage), STAMP)
    told = [data for event in Framer().feed(body) if (data := data_of(event)) is not None]
    return b"".join(map(writer.feed, told)) + writer.end()


def answered(**members: Any) -> Any:
    return completion(answer(json.dumps(response_of(**members)).encode(), None, STAMP))


def test_a_whole_answer() -> None:
    body = answer(json.dumps(OPENAI_TOOLS[-1]["response"]).encode(), None, STAMP)
    completion(body)
    made = json.loads(body)
    assert (made["id"], made["model"], made["created"]) == ("chatcmpl-abc123", "alias", 1_764_000_000)
    assert made["choices"][0]["finish_reason"] == "tool_calls"
    assert made["choices"][0]["message"] == {
        "role": "assistant",
        "content": "I call",
        "refusal": None,
        "reasoning_content": "hm",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
            {"id": "b", "type": "custom", "custom": {"name": "g", "input": 'say "x"'}},
        ],
    }
    assert made["usage"] == {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "total_tokens": 14,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }


@pytest.mark.parametrize(("engine", "reason"), [("llama.cpp", "stop"), ("vllm", "length")])
def test_recorded_answers(engine: str, reason: str) -> None:
    body = recording(engine, "responses_nonstream").body
    made = completion(answer(body, None, STAMP))
    assert made.choices[0].finish_reason == reason
    assert made.choices[0].message.content == json.loads(body)["output"][0]["content"][0]["text"]


def test_reasoning_itself_goes_before_its_summary() -> None:
    body = recording("llama.cpp", "reasoning_responses").body
    assert json.loads(answer(body, None, STAMP))["choices"][0]["message"]["reasoning_content"].startswith(" avoided")


def test_a_refusal() -> None:
    content = [{"type": "refusal", "refusal": "no"}]
    message = answered(output=[{"type": "message", "content": content}]).choices[0].message
    assert (message.content, message.refusal) == (None, "no")


@pytest.mark.parametrize("members", [{"status": "failed"}, {"error": {"message": "x"}}, {"output": None}])
def test_what_is_no_answer(members: dict[str, Any]) -> None:
    with pytest.raises(StreamBroken):
        answered(**members)


def test_a_stream() -> None:
    # The SDK's types know functions only in a stream, where the API has custom tools too.
    chunks(written(stream_of(*(event for event in OPENAI_TOOLS if event.get("output_index") != 3))))
    body = written(stream_of(*OPENAI_TOOLS))
    told = [json.loads(line[6:]) for line in body.decode().split("\n") if line.startswith("data: {")]
    deltas = [choice["delta"] for one in told for choice in one["choices"]]
    assert deltas[:4] == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "hm"},
        {"content": "I "},
        {"content": "call"},
    ]
    assert [call for delta in deltas for call in delta.get("tool_calls", ())] == [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"index": 1, "id": "b", "type": "custom", "custom": {"name": "g", "input": ""}},
        {"index": 0, "function": {"arguments": '{"x":'}},
        {"index": 1, "custom": {"input": 'say "'}},
        {"index": 0, "function": {"arguments": "1}"}},
        {"index": 1, "custom": {"input": 'x"'}},
    ]
    assert told[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert told[-1]["usage"]["prompt_tokens_details"] == {"cached_tokens": 4}


def test_s7_the_usage_is_told_to_those_who_asked() -> None:
    assert b'"choices":[]' not in written(stream_of(*OPENAI_TOOLS), usage=False)


def test_calls_of_llama_cpp() -> None:
    made = final_completion(written(stream_of(*LLAMA_TOOLS)))
    calls = made.choices[0].message.tool_calls or []
    assert [(call.id, call.function.name, call.function.arguments) for call in calls if call.type == "function"] == [
        ("fc_x", "f", '{"x":1}')
    ]
    assert made.usage is not None
    assert made.usage.total_tokens == 14


@pytest.mark.parametrize("left_out", [(".delta",), (".delta", ".added")])
def test_calls_that_are_told_when_they_are_whole(left_out: tuple[str, ...]) -> None:
    body = written(stream_of(*(event for event in OPENAI_TOOLS if not event["type"].endswith(left_out))))
    grown: dict[int, str] = {}
    for one in body.split(b"\n\n"):
        if b'"tool_calls":' in one and b'"finish_reason":null' in one:
            for call in json.loads(one[6:])["choices"][0]["delta"]["tool_calls"]:
                told = call.get("function", {}).get("arguments") or call.get("custom", {}).get("input") or ""
                grown[call["index"]] = grown.get(call["index"], "") + told
    assert grown == {0: '{"x":1}', 1: 'say "x"'}


@pytest.mark.parametrize(("engine", "reason"), [("llama.cpp", "stop"), ("vllm", "length")])
def test_recorded_streams(engine: str, reason: str) -> None:
    body = recording(engine, "responses_stream").body
    made = final_completion(written(body))
    assert made.choices[0].finish_reason == reason
    assert made.choices[0].message.content == {"llama.cpp": "Hello there! I", "vllm": "RITEeof browser"}[engine]
    for at in range(0, len(body), 61):
        framer = Framer()
        writer = ChatWriter(Wanted(True), STAMP)
        events = framer.feed(body[:at]) + framer.feed(body[at:])
        told = [data for event in events if (data := data_of(event)) is not None]
        assert b"".join(map(writer.feed, told)) + writer.end() == written(body)


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "error", "message": "x"},
        {"type": "response.failed", "response": {}},
        {"type": "response.output_text.delta", "delta": 5},
        {"type": "response.function_call_arguments.delta", "delta": "x", "item_id": "unknown"},
        {"type": "response.output_item.added", "item": {"type": "function_call"}},
        {"type": 5},
        {},
    ],
)
def test_what_is_no_event_breaks_the_stream(payload: dict[str, Any]) -> None:
    with pytest.raises(StreamBroken):
        ChatWriter(None, STAMP).feed(json.dumps(payload).encode())

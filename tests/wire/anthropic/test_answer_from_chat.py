from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import StreamBroken
from gateway.wire.anthropic.answer_from_chat import answer
from gateway.wire.anthropic.request_to_chat import Asked
from gateway.wire.translation import Stamp
from tests.recordings import FOLDER, pairs, recording
from tests.wire.anthropic.checked import message

STAMP = Stamp("abc123", 1_764_000_000, "alias")


def chat(told: dict[str, Any], reason: str | None = "stop", **choice: Any) -> bytes:
    choices = [{"index": 0, "message": {"role": "assistant", **told}, "finish_reason": reason, **choice}]
    return json.dumps({"id": "x", "model": "served", "choices": choices}).encode()


def made(told: dict[str, Any], reason: str | None = "stop", stops: tuple[str, ...] = (), **choice: Any) -> Any:
    return message(answer(chat(told, reason, **choice), Asked(stops), STAMP))


def call(name: str | None, arguments: Any, call_id: str | None = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_text() -> None:
    told = made({"content": "hello"})
    assert (told.id, told.model, told.role, told.stop_reason) == ("msg_abc123", "alias", "assistant", "end_turn")
    assert [(block.type, block.text) for block in told.content] == [("text", "hello")]


@pytest.mark.parametrize("name", [name for name in pairs() if name.startswith("chat_")])
def test_what_llama_cpp_answers(name: str) -> None:
    body = (FOLDER / "llama.cpp" / "pairs" / f"{name}.json").read_bytes()
    told = message(answer(body, Asked(), STAMP))
    chosen = json.loads(body)["choices"][0]
    texts = [block.text for block in told.content if block.type == "text"]
    assert "".join(texts) == (chosen["message"].get("content") or "")
    usage = json.loads(body)["usage"]
    assert told.usage.input_tokens + (told.usage.cache_read_input_tokens or 0) == usage["prompt_tokens"]
    assert told.usage.output_tokens == usage["completion_tokens"]


def test_what_vllm_answers() -> None:
    told = message(answer(recording("vllm", "chat_nonstream").body, Asked(), STAMP))
    assert (told.stop_reason, told.usage.output_tokens > 0) == ("max_tokens", True)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_r1_reasoning_is_thinking(name: str) -> None:
    told = made({name: "hm", "content": "hi"})
    assert [block.type for block in told.content] == ["thinking", "text"]
    assert told.content[0].thinking == "hm"


def test_tool_calls_keep_the_bytes_of_their_arguments() -> None:
    body = answer(chat({"tool_calls": [call("run", '{ "n" :1.0}')]}, "tool_calls"), Asked(), STAMP)
    assert b'"input":{ "n" :1.0}' in body
    told = message(body)
    assert told.stop_reason == "tool_use"
    assert (told.content[0].id, told.content[0].name) == ("c1", "run")


def test_a_forced_call_that_ends_with_stop_is_run_too() -> None:
    assert made({"tool_calls": [call("run", "{}")]}, "stop").stop_reason == "tool_use"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("", {}),
        (None, {}),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_arguments_of_engines_that_send_no_text(arguments: Any, shown: Any) -> None:
    assert made({"tool_calls": [call("run", arguments)]}, "tool_calls").content[0].input == shown


@pytest.mark.parametrize("arguments", ['{"a": 1', "[1]", "{}{}", 7])
def test_arguments_that_are_no_object_are_no_call(arguments: Any) -> None:
    calls = {"tool_calls": [call("walk", "{}"), call("run", arguments)]}
    with pytest.raises(StreamBroken):
        made(calls, "tool_calls")
    told = made(calls, "length")
    assert ([block.name for block in told.content], told.stop_reason) == (["walk"], "max_tokens")


def test_a_call_without_an_id_gets_one() -> None:
    told = made({"tool_calls": [call("a", "{}", None), call("b", "{}", None)]})
    assert [block.id for block in told.content] == ["toolu_abc123_0", "toolu_abc123_1"]


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("tool_calls", "end_turn"),
        ("abort", "end_turn"),
        (None, "end_turn"),
    ],
)
def test_stop_reasons(finish: str | None, reason: str) -> None:
    assert made({"content": "x"}, finish).stop_reason == reason


def test_a_refusal() -> None:
    told = made({"content": None, "refusal": "No."})
    assert (told.stop_reason, told.content[0].text) == ("refusal", "No.")


@pytest.mark.parametrize("member", ["stop_reason", "matched_stop"])
def test_the_stop_sequence_that_was_met(member: str) -> None:
    told = made({"content": "x"}, "stop", ("END", "x"), **{member: "END"})
    assert (told.stop_reason, told.stop_sequence) == ("stop_sequence", "END")
    token = made({"content": "x"}, "stop", ("END",), **{member: 128009})
    assert (token.stop_reason, token.stop_sequence) == ("end_turn", None)


def test_an_empty_answer_is_a_message_with_an_empty_text() -> None:
    told = made({"content": ""})
    assert [(block.type, block.text) for block in told.content] == [("text", "")]
    assert (told.usage.input_tokens, told.usage.output_tokens) == (0, 0)


def test_content_in_parts() -> None:
    assert made({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}).content[0].text == "ab"


def test_nan_among_what_nobody_reads() -> None:
    body = b'{"choices":[{"message":{"content":"x"},"finish_reason":"stop","logprobs":{"content":[NaN]}}]}'
    assert message(answer(body, Asked(), STAMP)).content[0].type == "text"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"choices":[]}',
        b'{"choices":[{}],"error":{"message":"m"}}',
        b'{"choices":[{"message":{"content":5}}]}',
        b'{"choices":[{"message":{"tool_calls":[{}]}}]}',
        b'{"choices":[{"message":{"content":"\xff"}}]}',
    ],
)
def test_what_is_no_answer(body: bytes) -> None:
    with pytest.raises(StreamBroken):
        answer(body, Asked(), STAMP)

"""A chat request as a Responses request, for engines that speak responses only."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import MalformedRequest
from gateway.wire.chat_wanted import Wanted
from gateway.wire.responses.request_from_chat import from_chat
from tests.wire.responses.checked import responses_request

USER = {"role": "user", "content": "hi"}


def translated(**members: Any) -> dict[str, Any]:
    made = from_chat(json.dumps({"model": "m", "messages": [USER], **members}).encode())
    assert made.lost == ()
    return responses_request(made.body)


def lost(**members: Any) -> tuple[str, ...]:
    return from_chat(json.dumps({"model": "m", "messages": [USER], **members}).encode()).lost


def test_the_least() -> None:
    assert translated() == {"model": "m", "input": [USER], "store": False, "stream": False}


def test_a_conversation_with_calls() -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"id": "b", "type": "custom", "custom": {"name": "g", "input": "text"}},
    ]
    made = translated(
        messages=[
            {"role": "system", "content": "be kind"},
            USER,
            {"role": "assistant", "content": "I call", "reasoning_content": "hm", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "one"}]},
            {"role": "tool", "tool_call_id": "b", "content": "two"},
            {"role": "assistant", "content": None, "refusal": "no"},
        ]
    )["input"]
    assert made == [
        {"role": "system", "content": "be kind"},
        USER,
        {"role": "assistant", "content": "I call"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x": 1}'},
        {"type": "custom_tool_call", "call_id": "b", "name": "g", "input": "text"},
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "one"}]},
        {"type": "custom_tool_call_output", "call_id": "b", "output": "two"},
        {"role": "assistant", "content": "no"},
    ]


def test_pictures_and_files() -> None:
    content = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
        {"type": "file", "file": {"file_id": "f1"}},
    ]
    assert translated(messages=[{"role": "user", "content": content}])["input"][0]["content"] == [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "low"},
        {"type": "input_file", "file_id": "f1"},
    ]


def test_tools_and_their_choice() -> None:
    schema = {"type": "object", "properties": {"z": {}, "a": {}}}
    grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: x"}}
    made = translated(
        tools=[
            {"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}},
            {"type": "custom", "custom": {"name": "g", "format": grammar}},
        ],
        tool_choice={"type": "function", "function": {"name": "f"}},
        parallel_tool_calls=False,
    )
    assert made["tools"] == [
        {"type": "function", "name": "f", "description": "d", "parameters": schema, "strict": False},
        {"type": "custom", "name": "g", "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"}},
    ]
    assert made["tool_choice"] == {"type": "function", "name": "f"}
    assert made["parallel_tool_calls"] is False


def test_allowed_tools() -> None:
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]}
    made = translated(
        tools=[{"type": "function", "function": {"name": "f"}}],
        tool_choice={"type": "allowed_tools", "allowed_tools": allowed},
    )
    assert made["tool_choice"] == {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "function", "name": "f"}],
    }


def test_settings() -> None:
    made = translated(
        max_completion_tokens=9,
        temperature=0.5,
        reasoning_effort="low",
        verbosity="low",
        logprobs=True,
        top_logprobs=2,
        seed=3,
        frequency_penalty=0,
        stop=[],
        user="u",
        metadata={"a": "b"},
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
    )
    made.pop("input")
    assert made == {
        "model": "m",
        "temperature": 0.5,
        "user": "u",
        "max_output_tokens": 9,
        "reasoning": {"effort": "low"},
        "text": {
            "format": {"type": "json_schema", "name": "n", "strict": False, "schema": {"type": "object"}},
            "verbosity": "low",
        },
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 2,
        "store": False,
        "stream": False,
    }


def test_whether_the_usage_was_asked_for_is_kept() -> None:
    body = {"model": "m", "messages": [USER], "stream": True}
    assert from_chat(json.dumps(body).encode()).context == Wanted(False)
    asked = {**body, "stream_options": {"include_usage": True}}
    made = from_chat(json.dumps(asked).encode())
    assert made.context == Wanted(True)
    assert "stream_options" not in json.loads(made.body)


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({"n": 2}, "n"),
        ({"stop": ["x"]}, "stop"),
        ({"logit_bias": {"1": 5}}, "logit_bias"),
        ({"presence_penalty": 0.5}, "presence_penalty"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"tools": [{"type": "web"}]}, "tools[0].type=web"),
        ({"messages": [USER, {"role": "function", "name": "f", "content": "x"}]}, "messages[1].role=function"),
        ({"messages": [{"role": "user", "content": [{"type": "video_url"}]}]}, "messages[0].content[0].type=video_url"),
    ],
)
def test_what_a_response_has_no_place_for_is_lost(members: dict[str, Any], path: str) -> None:
    assert lost(**members) == (path,)


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "nobody", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
        (
            {"messages": [USER, {"role": "assistant", "tool_calls": [{"type": "function"}]}]},
            "messages[1].tool_calls[0].id",
        ),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": 5}}]}, "tools[0].function.parameters"),
        ({"tool_choice": "maybe"}, "tool_choice"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
        ({"n": "many"}, "n"),
    ],
)
def test_what_is_wrong_is_named(members: dict[str, Any], param: str) -> None:
    with pytest.raises(MalformedRequest) as caught:
        from_chat(json.dumps({"model": "m", "messages": [USER], **members}).encode())
    assert caught.value.param == param

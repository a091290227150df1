from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import MalformedRequest
from gateway.wire.anthropic.request_from_chat import MAX_TOKENS, from_chat
from gateway.wire.chat_wanted import Wanted
from gateway.wire.translation import Translated
from tests.wire.anthropic.checked import messages_request

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
HELLO = {"role": "user", "content": "hello"}


def translated(messages: list[Any], **members: Any) -> Translated:
    return from_chat(json.dumps({"model": "m", "messages": messages, **members}).encode())


def request(messages: list[Any], **members: Any) -> dict[str, Any]:
    made = translated(messages, **members)
    assert made.lost == ()
    return messages_request(made.body)


def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_a_conversation() -> None:
    made = request(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": [text("And kind.")]},
            HELLO,
            {"role": "assistant", "content": "hi", "reasoning_content": "hm"},
            {"role": "user", "content": [text("a"), text("b")]},
        ]
    )
    assert made == {
        "model": "m",
        "max_tokens": MAX_TOKENS,
        "stream": False,
        "system": "Be brief.\n\nAnd kind.",
        "messages": [
            {"role": "user", "content": [text("hello")]},
            {"role": "assistant", "content": [text("hi")]},
            {"role": "user", "content": [text("a"), text("b")]},
        ],
    }


def test_instructions_further_down_stay_in_their_place() -> None:
    made = request(
        [HELLO, {"role": "assistant", "content": "hi"}, HELLO, {"role": "system", "content": "Now in French."}]
    )
    assert made["messages"][2]["content"] == [
        text("hello"),
        text("<system-reminder>\nNow in French.\n</system-reminder>"),
    ]


def test_calls_and_results_and_words_are_turns_that_alternate() -> None:
    made = request(
        [
            HELLO,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [call("c1", "run", '{"n" :1.0}'), call("c2", "now", "")],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
            {"role": "tool", "tool_call_id": "c2", "content": [text("12:30")]},
            {"role": "user", "content": "And?"},
        ]
    )
    assert made["messages"][1]["content"] == [
        {"type": "tool_use", "id": "c1", "name": "run", "input": {"n": 1.0}},
        {"type": "tool_use", "id": "c2", "name": "now", "input": {}},
    ]
    assert made["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "done"},
        {"type": "tool_result", "tool_use_id": "c2", "content": [text("12:30")]},
        text("And?"),
    ]


def test_arguments_and_schemas_keep_their_bytes() -> None:
    body = (
        b'{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c","type":'
        b'"function","function":{"name":"run","arguments":"{\\"z\\" : 1.0, \\"a\\":\\"\\\\u00e9\\"}"}}]}],'
        b'"tools":[{"type":"function","function":{"name":"run","parameters":{"b": 1.0,"a":"\\u00e9"}}}]}'
    )
    made = from_chat(body).body
    assert rb'"input":{"z" : 1.0, "a":"\u00e9"}' in made
    assert rb'"input_schema":{"b": 1.0,"a":"\u00e9"}' in made


@pytest.mark.parametrize("arguments", ['{"a":', "[1]", "no"])
def test_arguments_that_are_no_object_go_on_as_text(arguments: str) -> None:
    made = request([HELLO, {"role": "assistant", "tool_calls": [call("c", "run", arguments)]}, HELLO])
    assert made["messages"][1]["content"][0]["input"] == {"arguments": arguments}


def test_ids_in_letters_that_are_taken_there() -> None:
    called = {"role": "assistant", "tool_calls": [call("functions.run:0", "run", "{}"), call("", "run", "{}")]}
    made = request([HELLO, called, {"role": "tool", "tool_call_id": "functions.run:0", "content": "x"}])
    ids = [made["messages"][1]["content"][0]["id"], made["messages"][2]["content"][0]["tool_use_id"]]
    assert ids == ["functions_run_0"] * 2


def test_pictures_and_files() -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,eA==", "detail": "low"}},
        {"type": "image_url", "image_url": "https://example.org/a.png"},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,eA=="}},
    ]
    assert request([{"role": "user", "content": parts}])["messages"][0]["content"] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "eA=="}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "eA=="},
            "title": "a.pdf",
        },
    ]


def test_what_is_empty_there_is_left_out() -> None:
    made = request([HELLO, {"role": "assistant", "content": ""}, {"role": "user", "content": [text(" "), text("b")]}])
    assert made["messages"] == [{"role": "user", "content": [text("hello"), text("b")]}]


def test_an_answer_to_go_on_with_does_not_end_with_a_space() -> None:
    assert request([HELLO, {"role": "assistant", "content": "It is \n"}])["messages"][1]["content"] == [text("It is")]
    called = {"role": "assistant", "content": "It is ", "tool_calls": [call("c", "run", "{}")]}
    assert request([HELLO, called])["messages"][1]["content"][0] == text("It is ")


def test_tools() -> None:
    tools = [
        {
            "type": "function",
            "function": {"name": "run", "description": "Run it", "parameters": SCHEMA, "strict": True},
        },
        {"type": "function", "function": {"name": "now", "strict": False}},
    ]
    assert request([HELLO], tools=tools)["tools"] == [
        {"name": "run", "description": "Run it", "strict": True, "input_schema": SCHEMA},
        {"name": "now", "input_schema": {"type": "object", "properties": {}}},
    ]


@pytest.mark.parametrize(
    ("choice", "made"),
    [
        ("auto", {"type": "auto"}),
        ("required", {"type": "any"}),
        ("none", {"type": "none"}),
        ({"type": "function", "function": {"name": "run"}}, {"type": "tool", "name": "run"}),
    ],
)
def test_tool_choice(choice: Any, made: dict[str, Any]) -> None:
    tools = [{"type": "function", "function": {"name": "run"}}]
    assert request([HELLO], tools=tools, tool_choice=choice)["tool_choice"] == made
    alone = made if choice == "none" else {**made, "disable_parallel_tool_use": True}
    assert request([HELLO], tools=tools, tool_choice=choice, parallel_tool_calls=False)["tool_choice"] == alone
    assert "tool_choice" not in request([HELLO], tool_choice=choice)


def test_one_call_at_a_time_without_a_choice() -> None:
    made = request([HELLO], tools=[{"type": "function", "function": {"name": "run"}}], parallel_tool_calls=False)
    assert made["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


@pytest.mark.parametrize(
    ("members", "budget"),
    [
        ({}, 4096),
        ({"max_tokens": 5}, 5),
        ({"max_tokens": 5, "max_completion_tokens": 6}, 6),
        ({"max_tokens": None}, 4096),
    ],
)
def test_a_budget_is_demanded_there(members: dict[str, Any], budget: int) -> None:
    assert request([HELLO], **members)["max_tokens"] == budget


@pytest.mark.parametrize(
    ("members", "made"),
    [
        ({"temperature": 0.5, "top_p": 1}, {"temperature": 0.5}),
        ({"temperature": 1.7, "top_p": 0.9, "top_k": 40}, {"temperature": 1, "top_p": 0.9, "top_k": 40}),
        ({"stop": "END"}, {"stop_sequences": ["END"]}),
        ({"stop": ["A", "B"]}, {"stop_sequences": ["A", "B"]}),
        ({"stop": []}, {}),
        ({"reasoning_effort": "minimal"}, {"output_config": {"effort": "low"}}),
        ({"reasoning_effort": "none"}, {}),
        ({"response_format": {"type": "text"}}, {}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}},
            {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        ),
        ({"seed": 1, "presence_penalty": 1, "user": "u", "metadata": {}, "logprobs": False, "n": 1, "store": True}, {}),
    ],
)
def test_members(members: dict[str, Any], made: dict[str, Any]) -> None:
    told = request([HELLO], **members)
    assert {key: told[key] for key in told if key not in ("model", "max_tokens", "stream", "messages")} == made


def test_streams_and_their_usage() -> None:
    assert request([HELLO], stream=True)["stream"] is True
    assert translated([HELLO], stream=True).context == Wanted(include_usage=False)
    assert translated([HELLO], stream_options={"include_usage": True}).context == Wanted(include_usage=True)


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"logit_bias": {"5": -100}}, "logit_bias"),
        ({"functions": [{"name": "x"}]}, "functions"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"stop": "\n"}, "stop"),
        ({"response_format": {"type": "json_object"}}, "response_format.type=json_object"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0].type=custom"),
        ({"tool_choice": {"type": "allowed_tools"}}, "tool_choice.type=allowed_tools"),
        (
            {"messages": [{"role": "user", "content": [text("x"), {"type": "input_audio", "input_audio": {}}]}]},
            "messages[0].content[1].type=input_audio",
        ),
        ({"messages": [HELLO, {"role": "function", "name": "x", "content": "y"}]}, "messages[1].role=function"),
        ({"messages": [HELLO, {"role": "assistant", "function_call": {"name": "x"}}]}, "messages[1].function_call"),
    ],
)
def test_what_has_no_counterpart_is_lost_by_its_path(members: dict[str, Any], path: str) -> None:
    made = from_chat(json.dumps({"model": "m", "messages": [HELLO], **members}).encode())
    assert made.lost == (path,)


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": 5}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls[0].id"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///x"}}]}]},
            "messages[0].content[0].image_url.url",
        ),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [{"type": "function", "function": {"name": "x", "parameters": 5}}]}, "tools[0].function.parameters"),
        ({"tool_choice": "some"}, "tool_choice"),
        ({"max_tokens": "x"}, "max_tokens"),
        ({"stop": 5}, "stop"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
        ({"stream_options": 5}, "stream_options"),
    ],
)
def test_what_is_wrong_is_named(members: dict[str, Any], param: str) -> None:
    with pytest.raises(MalformedRequest) as caught:
        from_chat(json.dumps({"model": "m", "messages": [HELLO], **members}).encode())
    assert caught.value.param == param

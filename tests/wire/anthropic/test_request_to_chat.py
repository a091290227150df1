from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import MalformedRequest
from gateway.wire.anthropic.request_to_chat import Asked, to_chat
from gateway.wire.chat_request import parse_chat
from gateway.wire.translation import Translated
from tests.wire.anthropic.checked import chat_request

SCHEMA = '{"type":"object", "required":["b","a"],"properties":{"b":{"type":"integer"},"a":{"maximum":1.0}}}'
PNG = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}


def translated(turns: list[Any], **members: Any) -> Translated:
    return to_chat(json.dumps({"model": "m", "max_tokens": 100, "messages": turns, **members}).encode())


def chat(turns: list[Any], **members: Any) -> dict[str, Any]:
    result = translated(turns, **members)
    assert result.lost == ()
    parse_chat(result.body)
    return chat_request(result.body)


def messages(turns: list[Any], **members: Any) -> list[Any]:
    return chat(turns, **members)["messages"]


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def call(call_id: str, name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def result(call_id: str, content: Any = None, **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, **more}
    return block if content is None else {**block, "content": content}


HELLO = [user(text("hello"))]


def test_text_is_one_string_whatever_it_came_as() -> None:
    assert messages([{"role": "user", "content": "hello"}]) == [{"role": "user", "content": "hello"}]
    assert messages([user(text("one"), text(""), text("two"))]) == [{"role": "user", "content": "one\n\ntwo"}]


def test_the_system_prompt_comes_first_and_keeps_its_text() -> None:
    system = [
        text("x-billing-header: version=1.2.3a;"),
        text("You are an agent.", cache_control={"type": "ephemeral"}),
        text("\nBe brief."),
    ]
    first = messages(HELLO, system=system)[0]
    assert first == {
        "role": "system",
        "content": "x-billing-header: version=1.2.3a;\n\nYou are an agent.\n\n\nBe brief.",
    }
    assert messages(HELLO, system="Be brief.")[0] == {"role": "system", "content": "Be brief."}
    assert messages(HELLO, system=[])[0]["role"] == "user"


def test_a_system_message_further_down_stays_in_its_place_as_part_of_the_users_turn() -> None:
    turns = [user(text("hello")), {"role": "system", "content": "Agents: none."}, assistant(text("hi")), *HELLO]
    assert messages(turns) == [
        {"role": "user", "content": "hello\n\n<system-reminder>\nAgents: none.\n</system-reminder>"},
        {"role": "assistant", "content": "hi"},
        {"role": "user", "content": "hello"},
    ]


def test_a_system_message_at_the_head_belongs_to_the_system_prompt() -> None:
    turns = [{"role": "system", "content": [text("And kind.")]}, *HELLO]
    assert messages(turns, system="Be brief.")[0] == {"role": "system", "content": "Be brief.\n\nAnd kind."}


def test_calls_and_results() -> None:
    turns = [
        *HELLO,
        assistant(text("Let me see."), call("toolu_1", "run", command="ls", n=1), call("toolu_2", "now")),
        user(result("toolu_1", "a.txt", is_error=False), result("toolu_2", [text("12"), text("30")]), text("And?")),
    ]
    made = messages(turns)
    assert made[1] == {
        "role": "assistant",
        "content": "Let me see.",
        "tool_calls": [
            {
                "id": "toolu_1",
                "type": "function",
                "function": {"name": "run", "arguments": '{"command": "ls", "n": 1}'},
            },
            {"id": "toolu_2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
        ],
    }
    assert made[2:] == [
        {"role": "tool", "tool_call_id": "toolu_1", "content": "a.txt"},
        {"role": "tool", "tool_call_id": "toolu_2", "content": "12\n\n30"},
        {"role": "user", "content": "And?"},
    ]


def test_an_answer_of_calls_alone_has_no_content() -> None:
    assert messages([*HELLO, assistant(call("t", "now"))])[1]["content"] is None


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("no such file", "Error: no such file"),
        ("Error: no such file", "Error: no such file"),
        ([text("gone")], "Error: gone"),
        (None, "Error: "),
    ],
)
def test_a_failed_call_is_told_as_one(content: Any, shown: str) -> None:
    made = messages([*HELLO, assistant(call("t", "now")), user(result("t", content, is_error=True))])
    assert made[2]["content"] == shown


def test_pictures_in_results_lead_the_next_user_message() -> None:
    shot = result("t", [text("done"), {"type": "image", "source": PNG}])
    made = messages([*HELLO, assistant(call("t", "shoot")), user(shot, text("What is it?"))])
    assert made[2] == {"role": "tool", "tool_call_id": "t", "content": "done\n\n(picture: see the next message)"}
    assert made[3]["content"] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}},
        {"type": "text", "text": "What is it?"},
    ]


def test_pictures_by_link() -> None:
    linked = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    assert messages([user(linked)])[0]["content"] == [
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    ]


def test_documents_of_text_are_text() -> None:
    plain = {
        "type": "document",
        "title": "Notes",
        "source": {"type": "text", "media_type": "text/plain", "data": "one"},
    }
    blocks = {"type": "document", "source": {"type": "content", "content": [text("two")]}, "context": "draft"}
    found = {"type": "search_result", "title": "T", "source": "https://example.org", "content": [text("three")]}
    assert messages([user(plain, blocks, found)])[0]["content"] == (
        "Notes\n\none\n\ndraft\n\ntwo\n\nT\n\nhttps://example.org\n\nthree"
    )


def test_r1_thinking_goes_on_as_reasoning_and_redacted_thinking_does_not() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    made = messages([*HELLO, assistant(thought, {"type": "redacted_thinking", "data": "eA=="}, text("hi"))])
    assert made[1] == {"role": "assistant", "reasoning_content": "hm", "content": "hi"}


def test_schemas_and_arguments_keep_their_bytes() -> None:
    given = '{"z" : 1.0,"a":"\\u00e9"}'
    body = (
        '{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":'
        '[{"type":"tool_use","id":"t","name":"run","input":' + given + "}]}],"
        '"tools":[{"name":"run","description":"Run","input_schema":'
        + SCHEMA
        + ',"cache_control":{"type":"ephemeral"}}]}'
    )
    made = to_chat(body.encode()).body
    assert SCHEMA.encode() in made
    assert chat_request(made)["messages"][1]["tool_calls"][0]["function"]["arguments"] == given


def test_tools() -> None:
    tools = [
        {"name": "run", "description": "Run it", "input_schema": {"type": "object"}, "defer_loading": True},
        {"type": "custom", "name": "bare", "input_schema": {"type": "object"}, "strict": True},
    ]
    assert chat(HELLO, tools=tools)["tools"] == [
        {"type": "function", "function": {"name": "run", "description": "Run it", "parameters": {"type": "object"}}},
        {"type": "function", "function": {"name": "bare", "parameters": {"type": "object"}, "strict": True}},
    ]
    assert "tools" not in chat(HELLO, tools=[])


@pytest.mark.parametrize(
    ("choice", "made"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "run"}, {"type": "function", "function": {"name": "run"}}),
    ],
)
def test_tool_choice(choice: dict[str, Any], made: Any) -> None:
    tools = [{"name": "run", "input_schema": {"type": "object"}}]
    request = chat(HELLO, tools=tools, tool_choice=choice)
    assert request["tool_choice"] == made
    assert "parallel_tool_calls" not in request
    alone = chat(HELLO, tools=tools, tool_choice={**choice, "disable_parallel_tool_use": True})
    assert alone["parallel_tool_calls"] is False
    assert "tool_choice" not in chat(HELLO, tool_choice=choice)  # engines refuse a choice among none


def test_sampling_and_limits() -> None:
    body = (
        b'{"max_tokens":32000,"temperature":0.70,"top_p":1e0,"top_k":40,"stop_sequences":["END","\\n\\n"],"min_p":0.05,'
        b'"messages":[{"role":"user","content":"x"}],"model":"m"}'
    )
    made = to_chat(body)
    assert b'"temperature":0.70,"top_p":1e0,"top_k":40,"max_tokens":32000,"min_p":0.05' in made.body
    assert chat_request(made.body)["stop"] == ["END", "\n\n"]
    assert made.context == Asked(("END", "\n\n"))


def test_streams_are_asked_for_with_their_usage() -> None:
    assert chat(HELLO)["stream"] is False
    assert "stream_options" not in chat(HELLO)
    streamed = chat(HELLO, stream=True)
    assert (streamed["stream"], streamed["stream_options"]) == (True, {"include_usage": True})


@pytest.mark.parametrize("member", ["output_config", "output_format"])
def test_structured_output(member: str) -> None:
    schema = {"type": "json_schema", "schema": {"type": "object", "properties": {"title": {"type": "string"}}}}
    told = {"format": schema, "effort": "high"} if member == "output_config" else schema
    request = chat(HELLO, **{member: told})
    assert request["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "response", "strict": True, "schema": schema["schema"]},
    }
    assert "reasoning_effort" not in request


@pytest.mark.parametrize(("effort", "made"), [("low", "low"), ("medium", "medium"), ("xhigh", "high"), ("max", "high")])
def test_effort(effort: str, made: str) -> None:
    assert chat(HELLO, output_config={"effort": effort})["reasoning_effort"] == made


@pytest.mark.parametrize("thinking", [{"type": "adaptive"}, {"type": "enabled", "budget_tokens": 2048}])
def test_thinking_is_what_reasoning_models_do_anyway(thinking: dict[str, Any]) -> None:
    assert set(chat(HELLO, thinking=thinking)) == {"model", "max_tokens", "stream", "messages"}


def test_thinking_switched_off() -> None:
    off = {"type": "disabled"}
    assert chat(HELLO, thinking=off)["chat_template_kwargs"] == {"enable_thinking": False}
    own = {"enable_thinking": True}
    assert chat(HELLO, thinking=off, chat_template_kwargs=own)["chat_template_kwargs"] == own


def test_hints_are_left_out() -> None:
    hints = {
        "metadata": {"user_id": "u"},
        "service_tier": "auto",
        "cache_control": {"type": "ephemeral"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "container": None,
        "mcp_servers": [],
        "something_new": 1,
    }
    assert set(chat(HELLO, **hints)) == {"model", "max_tokens", "stream", "messages"}


@pytest.mark.parametrize(
    ("turns", "members", "path"),
    [
        (
            HELLO,
            {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
            "tools[0].type=web_search_20250305",
        ),
        (HELLO, {"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools[0].type=bash_20250124"),
        (HELLO, {"mcp_servers": [{"type": "url", "url": "https://x", "name": "x"}]}, "mcp_servers"),
        (HELLO, {"container": "c_1"}, "container"),
        (
            [user({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "eA=="}})],
            {},
            "messages[0].content[0].source.type=base64",
        ),
        (
            [user({"type": "image", "source": {"type": "file", "file_id": "f"}})],
            {},
            "messages[0].content[0].source.type=file",
        ),
        ([user({"type": "container_upload", "file_id": "f"})], {}, "messages[0].content[0].type=container_upload"),
        (
            [*HELLO, assistant({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, text("x"))],
            {},
            "messages[1].content[0].type=server_tool_use",
        ),
    ],
)
def test_what_has_no_counterpart_is_lost_by_its_path(turns: list[Any], members: dict[str, Any], path: str) -> None:
    turns = [*turns, user(text("go on"))]
    made = translated(turns, **members)
    assert made.lost == (path,)
    parse_chat(made.body)


def test_no_more_losses_are_listed_than_a_person_reads() -> None:
    assert len(translated([user(text("x"), *[{"type": "new"}] * 100)]).lost) == 16


@pytest.mark.parametrize(
    ("member", "value", "param"),
    [
        ("model", 1, "model"),
        ("max_tokens", "many", "max_tokens"),
        ("temperature", [], "temperature"),
        ("stop_sequences", "x", "stop_sequences"),
        ("stop_sequences", [1], "stop_sequences[0]"),
        ("stream", "yes", "stream"),
        ("system", 5, "system"),
        ("system", [{"text": "x"}], "system[0].type"),
        ("tools", {}, "tools"),
        ("tools", [{"input_schema": {}}], "tools[0].name"),
        ("tools", [{"name": "x"}], "tools[0].input_schema"),
        ("tools", [{"name": "x", "input_schema": []}], "tools[0].input_schema"),
        ("tool_choice", {"type": "some"}, "tool_choice.type"),
        ("tool_choice", {"type": "tool"}, "tool_choice.name"),
        ("thinking", {}, "thinking.type"),
        ("output_config", {"format": {"type": "yaml"}}, "output_config.format.type"),
        ("output_config", {"format": {"type": "json_schema"}}, "output_config.format.schema"),
        ("messages", None, "messages"),
        ("messages", [], "messages"),
        ("messages", {}, "messages"),
        ("messages", ["x"], "messages[0]"),
        ("messages", [{"role": "robot", "content": "x"}], "messages[0].role"),
        ("messages", [{"content": "x"}], "messages[0].role"),
        ("messages", [{"role": "user"}], "messages[0].content"),
        ("messages", [{"role": "user", "content": 7}], "messages[0].content"),
        ("messages", [{"role": "user", "content": [{}]}], "messages[0].content[0].type"),
        ("messages", [{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text"),
        (
            "messages",
            [{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": "x"}]}],
            "messages[0].content[0].input",
        ),
        (
            "messages",
            [{"role": "user", "content": [{"type": "tool_result"}]}],
            "messages[0].content[0].tool_use_id",
        ),
        (
            "messages",
            [{"role": "user", "content": [{"type": "image", "source": "x"}]}],
            "messages[0].content[0].source",
        ),
    ],
)
def test_what_is_wrong_is_named(member: str, value: Any, param: str) -> None:
    body = {"model": "m", "messages": HELLO, member: value}
    with pytest.raises(MalformedRequest) as caught:
        to_chat(json.dumps(body).encode())
    assert caught.value.param == param


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"messages":[{"role":"user","content":"\xff"}]}', b"null"])
def test_what_is_no_body(body: bytes) -> None:
    with pytest.raises(MalformedRequest):
        to_chat(body)


def test_half_a_surrogate_pair_is_named() -> None:
    with pytest.raises(MalformedRequest) as caught:
        to_chat(b'{"model":"m","messages":[{"role":"user","content":"\\ud83d"}]}')
    assert caught.value.param == "messages"


@pytest.mark.parametrize("depth", [3, 50, 5000])
def test_documents_in_documents(depth: int) -> None:
    inner = '{"type":"document","source":{"type":"content","content":[' * depth + "]}}" * depth
    body = '{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"},' + inner + "]}]}"
    if depth > 1000:
        with pytest.raises(MalformedRequest):
            to_chat(body.encode())
    else:
        assert "type=document" in to_chat(body.encode()).lost[0]

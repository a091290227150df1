"""A Responses request as a chat request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import MalformedRequest
from gateway.wire.chat_request import parse_chat
from gateway.wire.responses.asked import Asked, Origin, ToolKind
from gateway.wire.responses.request_to_chat import to_chat
from tests.wire.anthropic.checked import chat_request

PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edits files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
}
AGENTS = {
    "type": "namespace",
    "name": "agents",
    "description": "Work with others.",
    "tools": [
        {"type": "function", "name": "spawn", "description": "Starts one.", "parameters": {"type": "object"}},
        {"type": "function", "name": "close", "parameters": {"type": "object"}},
    ],
}


def translated(**members: Any) -> dict[str, Any]:
    made = to_chat(json.dumps({"model": "m", "input": "hi", **members}).encode())
    assert made.lost == ()
    return chat_request(made.body)


def lost(**members: Any) -> tuple[str, ...]:
    made = to_chat(json.dumps({"model": "m", "input": "hi", **members}).encode())
    parse_chat(made.body)  # it is measured all the same
    return made.lost


def asked(**members: Any) -> Asked:
    context = to_chat(json.dumps({"model": "m", "input": "hi", **members}).encode()).context
    assert isinstance(context, Asked)
    return context


def messages(*items: Any, **members: Any) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = translated(input=list(items), **members)["messages"]
    return made


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def call(number: int) -> dict[str, Any]:
    return {"type": "function_call", "call_id": f"c{number}", "name": "f", "arguments": "{}"}


def output(number: int, told: Any = "done") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"c{number}", "output": told}


def test_a_text_is_what_the_user_says() -> None:
    assert translated() == {"model": "m", "messages": [user("hi")], "stream": False}


def test_a_stream_tells_its_usage() -> None:
    assert translated(stream=True)["stream_options"] == {"include_usage": True}


def test_instructions_and_what_developers_say_first_are_one_system_message() -> None:
    made = messages(
        {"role": "developer", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
        {"type": "message", "role": "system", "content": "c"},
        user("hi"),
        instructions="top",
    )
    assert made == [{"role": "system", "content": "top\n\na\n\nb\n\nc"}, user("hi")]


def test_what_a_developer_says_later_stays_in_its_place() -> None:
    made = messages(user("hi"), {"role": "developer", "content": "now careful"})
    assert made == [user("hi\n\nnow careful")]


def test_pictures_files_and_sounds_are_parts() -> None:
    content = [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": "data:image/png;base64,eA==", "detail": "high"},
        {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "original"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,eA=="},
        {"type": "input_audio", "input_audio": {"data": "eA==", "format": "wav"}},
    ]
    assert messages({"role": "user", "content": content})[0]["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA==", "detail": "high"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,eA=="}},
        {"type": "input_audio", "input_audio": {"data": "eA==", "format": "wav"}},
    ]


def test_a_turn_of_the_assistant_is_one_message() -> None:
    made = messages(
        user("hi"),
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "I look", "annotations": []}]},
        call(1),
        call(2),
        output(1),
        output(2, [{"type": "input_text", "text": "two"}]),
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    )
    assert made[1:] == [
        {
            "role": "assistant",
            "reasoning_content": "hm",
            "content": "I look",
            "tool_calls": [
                {"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for n in (1, 2)
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
        {"role": "assistant", "content": "no"},
    ]


def test_reasoning_itself_counts_more_than_its_summary_and_a_sealed_one_nothing() -> None:
    thought = {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": "short"}],
        "content": [{"type": "reasoning_text", "text": "long"}],
    }
    assert messages(user("hi"), thought, call(1))[1]["reasoning_content"] == "long"
    sealed = {"type": "reasoning", "id": "rs", "summary": [], "content": None, "encrypted_content": "gAAAA"}
    assert "reasoning_content" not in messages(user("hi"), sealed, call(1))[1]


def test_a_picture_from_a_tool_comes_after_all_outputs() -> None:
    picture = [{"type": "input_image", "image_url": "data:image/png;base64,eA=="}]
    made = messages(user("hi"), call(1), call(2), output(1, picture), output(2), user("what is it?"))
    assert [message["role"] for message in made] == ["user", "assistant", "tool", "tool", "user"]
    assert made[2]["content"] == "(see the next message)"
    assert made[4]["content"] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}},
        {"type": "text", "text": "what is it?"},
    ]


def test_items_of_a_service_are_left_out() -> None:
    made = messages(user("hi"), {"type": "web_search_call", "id": "ws", "status": "completed"}, user("there"))
    assert made == [user("hi\n\nthere")]


def test_a_custom_tool_is_a_function_of_one_text() -> None:
    made = translated(tools=[PATCH])["tools"][0]["function"]
    assert made["description"].startswith("Edits files.")
    assert "lark grammar:\nstart: /.+/" in made["description"]
    assert list(made["parameters"]["properties"]) == ["input"]
    assert asked(tools=[PATCH]).origin("apply_patch") == Origin(ToolKind.CUSTOM, "apply_patch")
    history = messages(
        user("hi"),
        {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": '*** "é"\n'},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"},
        tools=[PATCH],
    )
    assert json.loads(history[1]["tool_calls"][0]["function"]["arguments"]) == {"input": '*** "é"\n'}
    assert history[2] == {"role": "tool", "tool_call_id": "c", "content": "ok"}


def test_tools_in_a_namespace_have_its_name_before_theirs() -> None:
    tools = translated(tools=[AGENTS])["tools"]
    assert [tool["function"]["name"] for tool in tools] == ["agents__spawn", "agents__close"]
    assert tools[0]["function"]["description"] == "Starts one.\n\nagents: Work with others."
    assert asked(tools=[AGENTS]).origin("agents__close") == Origin(ToolKind.FUNCTION, "close", "agents")
    called = messages(user("hi"), {**call(1), "name": "spawn", "namespace": "agents"}, tools=[AGENTS])
    assert called[1]["tool_calls"][0]["function"]["name"] == "agents__spawn"


def test_long_names_in_a_namespace_stay_apart_within_the_limit() -> None:
    space = {**AGENTS, "name": "mcp__a.b__" + "x" * 60}
    names = [tool["function"]["name"] for tool in translated(tools=[space])["tools"]]
    assert len(set(names)) == 2
    assert all(len(name) <= 64 and name.startswith("mcp__a_b__x") for name in names)
    assert {asked(tools=[space]).origin(name).name for name in names} == {"spawn", "close"}


def test_a_shell_of_the_client_is_a_function() -> None:
    assert translated(tools=[{"type": "local_shell"}])["tools"][0]["function"]["name"] == "local_shell"
    action = {"type": "exec", "command": ["ls"], "env": {}, "timeout_ms": 5, "user": None}
    made = messages(
        user("hi"),
        {"type": "local_shell_call", "id": "lsh", "call_id": "c", "status": "completed", "action": action},
        {"type": "local_shell_call_output", "id": "c", "output": "a.py"},
    )
    assert json.loads(made[1]["tool_calls"][0]["function"]["arguments"]) == {"command": ["ls"], "timeout_ms": 5}
    assert made[2]["tool_call_id"] == "c"


def test_tools_that_were_found_are_offered() -> None:
    search = {"type": "tool_search", "execution": "client", "description": "d", "parameters": {"type": "object"}}
    made = to_chat(
        json.dumps(
            {
                "model": "m",
                "tools": [search],
                "input": [
                    user("hi"),
                    {
                        "type": "tool_search_call",
                        "call_id": "s",
                        "execution": "client",
                        "arguments": {"query": "agents"},
                        "status": "completed",
                    },
                    {
                        "type": "tool_search_output",
                        "call_id": "s",
                        "execution": "client",
                        "tools": [AGENTS],
                        "status": "completed",
                    },
                ],
            }
        ).encode()
    )
    request = chat_request(made.body)
    assert [tool["function"]["name"] for tool in request["tools"]] == ["tool_search", "agents__spawn", "agents__close"]
    assert [message["role"] for message in request["messages"]] == ["user", "assistant", "tool"]


def test_tools_of_a_service_are_left_out_where_they_are_merely_offered() -> None:
    tools = [{"type": "web_search", "external_web_access": True}, {"type": "image_generation"}]
    assert "tools" not in translated(tools=tools, tool_choice="auto")
    assert len(translated(tools=[*tools, PATCH], parallel_tool_calls=True)["tools"]) == 1
    assert lost(tools=tools, tool_choice="required") == ("tool_choice=required",)
    assert lost(tools=tools, tool_choice={"type": "web_search"}) == ("tool_choice.type=web_search",)


@pytest.mark.parametrize("kind", ["file_search", "mcp", "code_interpreter", "computer_use_preview", "shell"])
def test_tools_that_work_on_what_only_the_service_has_are_lost(kind: str) -> None:
    assert lost(tools=[PATCH, {"type": kind}]) == (f"tools[1].type={kind}",)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ({"type": "custom", "name": "apply_patch"}, {"type": "function", "function": {"name": "apply_patch"}}),
        (
            {"type": "function", "name": "close", "namespace": "agents"},
            {"type": "function", "function": {"name": "agents__close"}},
        ),
    ],
)
def test_tool_choices(choice: Any, expected: Any) -> None:
    assert translated(tools=[PATCH, AGENTS], tool_choice=choice)["tool_choice"] == expected


def test_only_allowed_tools_are_offered() -> None:
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "custom", "name": "apply_patch"}]}
    made = translated(tools=[AGENTS, PATCH], tool_choice=choice)
    assert [tool["function"]["name"] for tool in made["tools"]] == ["apply_patch"]
    assert made["tool_choice"] == "required"


def test_settings_in_chats_words() -> None:
    made = translated(
        max_output_tokens=50,
        temperature=0.5,
        top_p=0.25,
        reasoning={"effort": "low", "summary": "auto"},
        include=["message.output_text.logprobs"],
        top_logprobs=2,
        prompt_cache_key="k",
        user="u",
        metadata={"a": "b"},
        store=True,
        service_tier="auto",
        truncation="auto",
        client_metadata={"x": "y"},
        stream_options={"include_obfuscation": False},
    )
    assert made == {
        "model": "m",
        "messages": [user("hi")],
        "temperature": 0.5,
        "top_p": 0.25,
        "prompt_cache_key": "k",
        "user": "u",
        "max_tokens": 50,
        "reasoning_effort": "low",
        "logprobs": True,
        "top_logprobs": 2,
        "stream": False,
    }


def test_r3_options_of_engines_go_on_and_chats_own_do_not() -> None:
    body = b'{"model":"m","input":"hi","min_p":0.050,"chat_template_kwargs":{"b":1,"a":2},"x_unknown":[1],"n":4}'
    made = to_chat(body).body
    assert b'"min_p":0.050' in made
    assert b'"chat_template_kwargs":{"b":1,"a":2}' in made
    assert b'"x_unknown":[1]' in made
    assert "n" not in json.loads(made)


def test_a_schema_keeps_its_bytes() -> None:
    schema = b'{"type":"object", "properties":{"z":{"type":"number","maximum":1.50},"a":{"type":"string"}}}'
    body = (
        b'{"model":"m","input":"hi","tools":[{"type":"function","name":"f","strict":true,"parameters":%b}],'
        b'"text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":%b}}}'
    ) % (schema, schema)
    made = to_chat(body).body
    assert made.count(schema) == 2
    assert json.loads(made)["response_format"]["json_schema"]["name"] == "n"
    assert json.loads(made)["tools"][0]["function"]["strict"] is True


@pytest.mark.parametrize("kind", ["text", "json_object"])
def test_other_formats(kind: str) -> None:
    made = translated(text={"format": {"type": kind}, "verbosity": "low"}).get("response_format")
    assert made == (None if kind == "text" else {"type": kind})


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"background": True}, "background"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0].type=item_reference"),
        ({"input": [{"id": "msg_1"}]}, "input[0].type=item_reference"),
        ({"input": [{"type": "compaction", "encrypted_content": "x"}]}, "input[0].type=compaction"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
            "input[0].content[0].file_id",
        ),
    ],
)
def test_what_only_a_service_keeps_is_lost(members: dict[str, Any], path: str) -> None:
    assert lost(**members) == (path,)


def test_what_is_not_asked_for_is_not_lost() -> None:
    assert lost(previous_response_id=None, background=False, conversation=None) == ()


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": ["x"]}, "input[0]"),
        ({"input": [{"role": "nobody", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text"),
        ({"input": [user("x"), {**call(1), "arguments": 5}]}, "input[1].arguments"),
        ({"input": [user("x"), {"type": "function_call_output", "output": "x"}]}, "input[1].call_id"),
        ({"instructions": ["x"]}, "instructions"),
        ({"tools": {}}, "tools"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": [{"type": "function", "name": "f", "parameters": []}]}, "tools[0].parameters"),
        ({"tools": [AGENTS], "tool_choice": {"type": "function", "name": "x"}}, "tool_choice.name"),
        ({"tool_choice": "maybe"}, "tool_choice"),
        ({"max_output_tokens": "many"}, "max_output_tokens"),
        ({"text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format.schema"),
        ({"stream": "yes"}, "stream"),
    ],
)
def test_what_is_wrong_is_named(members: dict[str, Any], param: str) -> None:
    with pytest.raises(MalformedRequest) as caught:
        to_chat(json.dumps({"model": "m", "input": "hi", **members}).encode())
    assert caught.value.param == param


def test_e6_half_an_emoji_is_refused_by_name() -> None:
    with pytest.raises(MalformedRequest) as caught:
        to_chat(b'{"model":"m","input":[{"role":"user","content":"\\ud83d"}]}')
    assert caught.value.param == "input"


def test_the_session_and_what_it_needs_are_read_from_it() -> None:
    made = to_chat(json.dumps({"model": "m", "input": "hi", "tools": [PATCH], "prompt_cache_key": "k"}).encode())
    chat = parse_chat(made.body)
    assert (chat.session, chat.tools, chat.needs) == ("k", 1, frozenset({"tools"}))

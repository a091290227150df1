from __future__ import annotations

import base64
import json
from itertools import pairwise
from typing import Any

import pytest

from gateway.errors import MalformedRequest
from gateway.wire.chat_request import parse_chat
from gateway.wire.ollama.request_to_chat import to_chat

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(12)).decode()
WEBP = base64.b64encode(b"RIFF\x00\x00\x00\x00WEBPVP8 ").decode()
WAV = base64.b64encode(b"RIFF\x00\x00\x00\x00WAVEfmt ").decode()
HELLO = [{"role": "user", "content": "How deep is the lake?"}]


def chat(**members: Any) -> Any:
    translated = to_chat(json.dumps({"model": "m", "messages": HELLO, **members}).encode())
    parse_chat(translated.body)
    assert translated.lost == ()
    return json.loads(translated.body)


def messages(*given: Any) -> Any:
    return chat(messages=list(given))["messages"]


def test_a_plain_request_streams_unless_it_says_otherwise() -> None:
    asked = {"model": "m", "stream": True, "stream_options": {"include_usage": True}, "messages": HELLO}
    assert chat() == asked
    assert chat(stream=None, options=None, tools=None, format=None, think=None) == asked
    assert chat(stream=False) == {"model": "m", "stream": False, "messages": HELLO}


def test_options_are_said_in_chats_words() -> None:
    options = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 20.0,
        "min_p": 0.05,
        "typical_p": 0.7,
        "repeat_last_n": 33,
        "repeat_penalty": 1.2,
        "presence_penalty": 1.5,
        "frequency_penalty": 1,
        "seed": 42,
        "num_predict": 100.9,
        "stop": ["\n", "user:", ""],
        "num_ctx": 1024,
        "num_gpu": 1,
        "num_keep": 5,
        "mirostat": 1,
        "use_mmap": True,
        "unheard_of": {},
    }
    told = {key: value for key, value in chat(options=options).items() if key not in ("model", "messages")}
    assert told == {
        "temperature": 0.5,
        "top_p": 0.9,
        "min_p": 0.05,
        "typical_p": 0.7,
        "presence_penalty": 1.5,
        "frequency_penalty": 1,
        "top_k": 20,
        "repeat_last_n": 33,
        "repeat_penalty": 1.2,
        "repetition_penalty": 1.2,
        "seed": 42,
        "max_tokens": 100,
        "stop": ["\n", "user:"],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize("limit", [-1, -2, 0, 2**40, None])
def test_no_limit_is_no_budget(limit: int | None) -> None:
    assert "max_tokens" not in chat(options={"num_predict": limit, "seed": -1})
    assert "seed" not in chat(options={"num_predict": limit, "seed": -1})


@pytest.mark.parametrize(
    ("think", "said"),
    [
        (True, {"chat_template_kwargs": {"enable_thinking": True}}),
        (False, {"chat_template_kwargs": {"enable_thinking": False}}),
        ("none", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("low", {"reasoning_effort": "low"}),
        ("high", {"reasoning_effort": "high"}),
        ("max", {"reasoning_effort": "high"}),
    ],
)
def test_thinking(think: object, said: dict[str, Any]) -> None:
    assert chat(think=think) == chat() | said


def test_k3_a_schema_keeps_the_order_and_spacing_of_its_members() -> None:
    schema = b'{ "type":"object","properties": {"z":{"type":"integer"}, "a":{"type":"string"}},"required":["z"] }'
    body = to_chat(b'{"model":"m","messages":[{"role":"user","content":"x"}],"format":' + schema + b"}").body
    assert schema in body
    assert json.loads(body)["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "response", "schema": json.loads(schema)},
    }
    assert chat(format="json")["response_format"] == {"type": "json_object"}
    assert chat(format="") == chat()


def test_log_probabilities() -> None:
    assert chat(logprobs=True, top_logprobs=3) == chat() | {"logprobs": True, "top_logprobs": 3}
    assert chat(logprobs=True) == chat() | {"logprobs": True}
    assert chat(logprobs=False, top_logprobs=3) == chat()


def test_tools_pass_as_they_came() -> None:
    tool = b'{"type":"function", "function":{"name":"depth","parameters":{"type":"object","b":1,"a":2}}}'
    bare = b'{"function": {"name":"x"}}'
    start = b'{"model":"m","messages":[{"role":"user","content":"x"}],"tools":['
    body = to_chat(start + tool + b", " + bare + b"]}").body
    assert b'"tools":[' + tool + b',{"type":"function","function":{"name":"x"}}]' in body
    assert chat(tools=[]) == chat()


def test_r2_calls_and_results_find_each_other_without_ids() -> None:
    call = [
        {"function": {"name": "depth", "arguments": {"lake": "Ohrid", "deep": {"b": 1, "a": 2}}}},
        {"function": {"name": "area"}},
        {"function": {"name": "depth", "arguments": {}}},
    ]
    found = messages(
        *HELLO,
        {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": call},
        {"role": "tool", "content": "358 km2", "tool_name": "area"},
        {"role": "tool", "content": "288 m", "tool_name": "depth"},
        {"role": "tool", "content": "??"},
        {"role": "tool", "content": "late", "tool_name": "depth"},
    )
    assert found[1]["reasoning_content"] == "hm"
    assert [one["id"] for one in found[1]["tool_calls"]] == ["call_1_0", "call_1_1", "call_1_2"]
    assert [one["type"] for one in found[1]["tool_calls"]] == ["function"] * 3
    assert json.loads(found[1]["tool_calls"][0]["function"]["arguments"]) == call[0]["function"]["arguments"]
    assert found[1]["tool_calls"][1]["function"]["arguments"] == "{}"
    assert [one["tool_call_id"] for one in found[2:]] == ["call_1_1", "call_1_0", "call_1_2", "call_5_0"]
    assert found[2]["name"] == "area"
    assert "name" not in found[4]


def test_ids_that_are_given_are_kept() -> None:
    calls = [{"id": "c1", "function": {"name": "a"}}, {"id": "c2", "function": {"name": "a"}}]
    found = messages(
        *HELLO,
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "content": "2", "tool_call_id": "c2", "tool_name": "a"},
        {"role": "tool", "content": "1", "tool_name": "a"},
        {"role": "tool", "content": "?", "tool_call_id": "c9"},
    )
    assert found[1]["content"] == ""
    assert [one["tool_call_id"] for one in found[2:]] == ["c2", "c1", "c9"]


def test_k3_arguments_keep_their_bytes() -> None:
    arguments = b'{"z": 1.0,"a":[1,  2], "\\u00e9":null}'
    call = b'{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":' + arguments + b"}}]}"
    body = to_chat(b'{"model":"m","messages":[{"role":"user","content":"x"},' + call + b"]}").body
    assert json.loads(body)["messages"][1]["tool_calls"][0]["function"]["arguments"].encode() == arguments


def test_pictures_come_before_the_text_with_the_type_that_they_have() -> None:
    found = messages({"role": "USER", "content": "what?", "images": [PNG, WEBP, WAV, "data:image/png;base64," + PNG]})
    assert found == [
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                {"type": "image_url", "image_url": {"url": f"data:image/webp;base64,{WEBP}"}},
                {"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                {"type": "text", "text": "what?"},
            ],
        }
    ]
    assert messages({"role": "user", "content": "", "images": [PNG]})[0]["content"] == found[0]["content"][:1]
    assert messages({"role": "user", "content": "x", "images": []}) == [{"role": "user", "content": "x"}]


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "image/jpeg"),
        (b"GIF89a\x01\x00\x01\x00", "image/gif"),
        (b"BM\x00\x00\x00\x00\x00", "image/bmp"),
        (b"II*\x00\x00\x00", "image/tiff"),
        (b"nothing known", "image/png"),
        (b"\xff", "image/png"),
    ],
)
def test_kinds_of_pictures(head: bytes, kind: str) -> None:
    for text in (base64.encodebytes(head).decode(), base64.urlsafe_b64encode(head).decode()):
        url = messages({"role": "user", "content": "", "images": [text]})[0]["content"][0]["image_url"]["url"]
        assert url == f"data:{kind};base64,{base64.b64encode(head).decode()}"


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"model": None}, "model"),
        ({"model": ""}, "model"),
        ({"model": 7}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": {}}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": 1}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "images": PNG}]}, "messages[0].images"),
        ({"messages": [{"role": "user", "images": ["?!"]}]}, "messages[0].images[0]"),
        ({"messages": [{"role": "user", "images": [""]}]}, "messages[0].images[0]"),
        ({"messages": [{"role": "user", "images": [7]}]}, "messages[0].images[0]"),
        ({"messages": [{"role": "user", "images": ["https://host.invalid/a.png"]}]}, "messages[0].images[0]"),
        ({"messages": [{"role": "assistant", "thinking": 7}]}, "messages[0].thinking"),
        ({"messages": [{"role": "assistant", "tool_calls": {}}]}, "messages[0].tool_calls"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls[0].function"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "x", "arguments": "{}"}}]}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
        ({"messages": [{"role": "tool", "tool_name": 7}]}, "messages[0].tool_name"),
        ({"stream": "yes"}, "stream"),
        ({"options": []}, "options"),
        ({"options": {"temperature": "hot"}}, "options.temperature"),
        ({"options": {"num_predict": "many"}}, "options.num_predict"),
        ({"options": {"top_k": True}}, "options.top_k"),
        ({"options": {"stop": [7]}}, "options.stop[0]"),
        ({"options": {"repeat_penalty": []}}, "options.repeat_penalty"),
        ({"format": "xml"}, "format"),
        ({"format": 7}, "format"),
        ({"think": ""}, "think"),
        ({"think": 7}, "think"),
        ({"tools": {}}, "tools"),
        ({"tools": [7]}, "tools[0]"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"logprobs": 5}, "logprobs"),
    ],
)
def test_an_odd_member_is_named(members: dict[str, Any], param: str) -> None:
    with pytest.raises(MalformedRequest) as refused:
        chat(**members)
    assert refused.value.param == param


def test_what_has_no_place_in_chat() -> None:
    body = json.dumps({"model": "m", "messages": HELLO, "_debug_render_only": True, "keep_alive": "5m", "shift": True})
    assert to_chat(body.encode()).lost == ("_debug_render_only",)


def test_k3_a_history_that_grows_keeps_its_bytes() -> None:
    history: list[Any] = [
        {"role": "system", "content": "Be brief — “so”."},
        {"role": "user", "content": "what?", "images": [PNG]},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "f", "arguments": {"b": 1, "a": 2}}}],
        },
        {"role": "tool", "content": "12", "tool_name": "f"},
        {"role": "assistant", "content": "Twelve.", "thinking": "hm"},
        {"role": "user", "content": "And?"},
    ]
    sent = [
        to_chat(json.dumps({"model": "m", "messages": history[:n]}, ensure_ascii=False).encode()).body
        for n in range(2, len(history) + 1)
    ]
    for shorter, longer in pairwise(sent):
        assert longer.startswith(shorter.removesuffix(b"]}"))

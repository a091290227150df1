from __future__ import annotations

import base64
import json
from itertools import pairwise
from typing import Any

import openai.types.chat
import pytest

from gateway.errors import MalformedRequest, StreamBroken
from gateway.wire.assemble import Assembler
from gateway.wire.chat_wanted import Wanted
from gateway.wire.ollama.answer_to_chat import answer
from gateway.wire.ollama.assemble import OllamaAssembler
from gateway.wire.ollama.request_from_chat import from_chat
from gateway.wire.ollama.request_to_chat import to_chat
from gateway.wire.ollama.stream_to_chat import ChatWriter
from gateway.wire.sse import Framer, data_of
from tests.wire.ollama.samples import STAMP, WHOLE_STREAMS, framed, lines_data

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(12)).decode()
HELLO = [{"role": "user", "content": "How deep is the lake?"}]
CHATS = {name: body for name, body in WHOLE_STREAMS.items() if name.startswith("chat")}


def body(**members: Any) -> bytes:
    return json.dumps({"model": "m", "messages": HELLO, **members}).encode()


def ollama(**members: Any) -> Any:
    translated = from_chat(body(**members))
    assert translated.lost == ()
    return json.loads(translated.body)


def messages(*given: Any) -> Any:
    return ollama(messages=list(given))["messages"]


def test_streams_are_said_either_way() -> None:
    assert ollama() == {"model": "m", "stream": False, "messages": HELLO}
    assert ollama(stream=True)["stream"] is True
    assert from_chat(body(stream=True, stream_options={"include_usage": True})).context == Wanted(include_usage=True)
    assert from_chat(body()).context == Wanted(include_usage=False)


def test_sampling_becomes_options() -> None:
    asked = ollama(
        temperature=0.5,
        top_p=0.9,
        top_k=20,
        min_p=0.1,
        seed=7,
        presence_penalty=1,
        frequency_penalty=0.5,
        repetition_penalty=1.1,
        max_completion_tokens=50,
        max_tokens=60,
        stop="\n",
        user="x",
        metadata={},
    )
    assert asked["options"] == {
        "temperature": 0.5,
        "top_p": 0.9,
        "min_p": 0.1,
        "presence_penalty": 1,
        "frequency_penalty": 0.5,
        "repeat_penalty": 1.1,
        "top_k": 20,
        "seed": 7,
        "num_predict": 50,
        "stop": ["\n"],
    }
    assert set(asked) == {"model", "stream", "options", "messages"}
    assert ollama(max_tokens=0)["options"] == {"num_predict": 1}
    assert "options" not in ollama(n_predict=-1, stop=[])


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"reasoning_effort": "none"}, {"think": False}),
        ({"reasoning_effort": "minimal"}, {"think": "low"}),
        ({"reasoning_effort": "xhigh"}, {"think": "high"}),
        ({"reasoning_effort": "unheard of"}, {}),
        ({"chat_template_kwargs": {"enable_thinking": False}}, {"think": False}),
        ({"chat_template_kwargs": {"enable_thinking": True}}, {"think": True}),
        ({"chat_template_kwargs": {"other": 1}}, {}),
        ({"response_format": {"type": "text"}}, {}),
        ({"response_format": {"type": "json_object"}}, {"format": "json"}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}},
            {"format": {"type": "object"}},
        ),
        ({"logprobs": True, "top_logprobs": 2}, {"logprobs": True, "top_logprobs": 2}),
        ({"logprobs": False, "top_logprobs": 2}, {}),
        ({"n": 1, "logit_bias": {}, "functions": [], "modalities": ["text"]}, {}),
    ],
)
def test_what_is_said_in_other_words(members: dict[str, Any], said: dict[str, Any]) -> None:
    assert ollama(**members) == ollama() | said


def test_tools_and_whether_they_may_be_used() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    assert ollama(tools=[tool])["tools"] == [tool]
    assert ollama(tools=[tool], tool_choice="auto")["tools"] == [tool]
    assert "tools" not in ollama(tools=[tool], tool_choice="none")
    assert "tools" not in ollama(tools=[])
    assert from_chat(body(tools=[tool], tool_choice="required")).lost == ("tool_choice",)
    assert from_chat(body(tools=[tool, {"type": "custom"}])).lost == ("tools[1].type=custom",)


def test_messages_of_every_kind() -> None:
    arguments = '{"b": 1.0, "a":2}'
    found = messages(
        {"role": "developer", "content": [{"type": "text", "text": "Be"}, {"type": "text", "text": "brief."}]},
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                "what?",
                {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}},
                {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{oops"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c2", "content": "no"},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "yes"}]},
        {"role": "assistant", "content": "", "refusal": "No."},
    )
    assert found == [
        {"role": "system", "content": "Be\nbrief."},
        {"role": "user", "content": "what?", "images": [PNG, "UklG"]},
        {
            "role": "assistant",
            "content": "",
            "thinking": "hm",
            "tool_calls": [
                {"id": "c1", "function": {"index": 0, "name": "f", "arguments": {"b": 1.0, "a": 2}}},
                {"id": "c2", "function": {"index": 1, "name": "g", "arguments": {"arguments": "{oops"}}},
            ],
        },
        {"role": "tool", "content": "no", "tool_name": "g", "tool_call_id": "c2"},
        {"role": "tool", "content": "yes", "tool_name": "f", "tool_call_id": "c1"},
        {"role": "assistant", "content": "No."},
    ]
    sent = from_chat(body(messages=[{"role": "assistant", "tool_calls": [_call("c1", arguments)]}])).body
    assert b'"arguments":' + arguments.encode() in sent


def _call(call_id: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": arguments}}


@pytest.mark.parametrize(
    ("members", "lost"),
    [
        ({"n": 2}, "n"),
        ({"logit_bias": {"1": 2}}, "logit_bias"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"response_format": {"type": "grammar"}}, "response_format.type=grammar"),
        ({"messages": [{"role": "user", "content": [{"type": "file"}]}]}, "messages[0].content[0].type=file"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "https://a.invalid/b"}]}]},
            "messages[0].content[0].type=image_url",
        ),
        ({"messages": [*HELLO, {"role": "function", "name": "f", "content": ""}]}, "messages[1].role=function"),
        ({"messages": [{"role": "assistant", "function_call": {"name": "f"}}]}, "messages[0].function_call"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "x"}]}]}, "messages[0].tool_calls[0].type"),
    ],
)
def test_what_has_no_place(members: dict[str, Any], lost: str) -> None:
    assert from_chat(body(**members)).lost == (lost,)


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": 7}]}]}, "messages[0].content[0].type"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]},
            "messages[0].tool_calls[0].function.name",
        ),
        ({"model": 7}, "model"),
        ({"stream": 7}, "stream"),
        ({"temperature": "hot"}, "temperature"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"seed": []}, "seed"),
        ({"stop": 7}, "stop"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
        ({"stream_options": 7}, "stream_options"),
        ({"n": "x"}, "n"),
    ],
)
def test_an_odd_member_is_named(members: dict[str, Any], param: str) -> None:
    with pytest.raises(MalformedRequest) as refused:
        from_chat(body(**members))
    assert refused.value.param == param


def test_k3_a_history_that_grows_keeps_its_bytes() -> None:
    history: list[Any] = [
        *HELLO,
        {"role": "assistant", "content": "", "tool_calls": [_call("c1", '{"z":1, "a":2}')]},
        {"role": "tool", "tool_call_id": "c1", "content": "12"},
        {"role": "assistant", "content": "Twelve."},
        {"role": "user", "content": "And?"},
    ]
    sent = [from_chat(body(messages=history[:n])).body for n in range(1, len(history) + 1)]
    for shorter, longer in pairwise(sent):
        assert longer.startswith(shorter.removesuffix(b"]}"))
    back = [json.loads(to_chat(each).body)["messages"] for each in sent]
    assert back[-1][1]["tool_calls"] == [_call("c1", '{"z":1, "a":2}')]
    assert back[-1][2] == {"role": "tool", "tool_call_id": "c1", "name": "f", "content": "12"}


def streamed(lines: bytes, wanted: bool = True) -> bytes:
    writer = ChatWriter(Wanted(include_usage=wanted), STAMP)
    return b"".join(writer.feed(data) for data in lines_data(lines)) + writer.end()


@pytest.mark.parametrize("name", CHATS)
def test_a_stream_and_its_whole_answer_say_the_same(name: str) -> None:
    lines = CHATS[name]
    events = Framer().feed(streamed(lines))
    assert events[-1] == b"data: [DONE]\n\n"
    assembler = Assembler("chat")
    for event in events[:-1]:
        openai.types.chat.ChatCompletionChunk.model_validate_json(data_of(event) or b"", strict=True)
        assembler.feed(event)
    native = OllamaAssembler()
    for line in framed([lines]):
        native.feed(line)
    whole = json.loads(answer(native.result(), None, STAMP))
    openai.types.chat.ChatCompletion.model_validate(whole)
    again = json.loads(assembler.result())
    said, told = whole["choices"][0], again["choices"][0]
    assert told["finish_reason"] == said["finish_reason"]
    assert told["message"]["content"] == (said["message"]["content"] or "")
    assert told["message"].get("tool_calls") == said["message"].get("tool_calls")
    assert told["message"].get("reasoning_content") == said["message"].get("reasoning_content")
    assert told.get("logprobs") == said["logprobs"]
    assert again["usage"] == whole["usage"]
    assert (whole["model"], whole["id"], whole["created"]) == ("lake", "chatcmpl-a1b2", STAMP.created)
    assert b'"usage"' not in streamed(lines, wanted=False)


def test_the_whole_answers_figures_and_reasons() -> None:
    native = OllamaAssembler()
    for line in framed([CHATS["chat_tools"]]):
        native.feed(line)
    whole = json.loads(answer(native.result(), None, STAMP))
    assert whole["usage"] == {
        "prompt_tokens": 177,
        "completion_tokens": 41,
        "total_tokens": 218,
        "prompt_tokens_details": {"cached_tokens": 8},
    }
    choice = whole["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert [one["id"] for one in choice["message"]["tool_calls"]] == ["call_k2j4h6g8", "call_z9x8c7v6"]
    assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])["model"] == "sonar"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"<html>",
        b'{"error":"x"}',
        b'{"message":{"content":"x"},"done":false}',
        b'{"message":{"content":7},"done":true}',
        b'{"message":{"content":"","tool_calls":[{"function":{}}]},"done":true}',
        b'{"message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},"done":true}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_answer_breaks_the_stream(data: bytes) -> None:
    with pytest.raises(StreamBroken):
        answer(data, None, STAMP)
    if data and b'"done":false' not in data:
        with pytest.raises(StreamBroken):
            ChatWriter(None, STAMP).feed(data)

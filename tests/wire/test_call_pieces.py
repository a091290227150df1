"""Names of tools in pieces, and calls without arguments, in every dialect that chat's streams are written in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import StreamBroken
from gateway.wire.assemble import Assembler
from gateway.wire.translation import Stamp
from gateway.wire.translations import translation

_STAMP = Stamp("a1", 1_700_000_000, "m", stream=True)
_SURFACES = ("messages", "responses", "ollama_chat")
_BODIES = {
    "messages": b'{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"a"}]}',
    "responses": b'{"model":"m","input":"a"}',
    "ollama_chat": b'{"model":"m","messages":[{"role":"user","content":"a"}]}',
}


def piece(index: int, name: str | None = None, arguments: str | None = None, call_id: str | None = None) -> Any:
    return {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}


def written(surface: str, *pieces: Any) -> list[tuple[str, Any]]:
    """The calls that a client of this surface gets out of these pieces, a chunk each: names and arguments."""
    way = translation(surface, "chat")
    writer = way.writer(way.request(_BODIES[surface]).context, _STAMP)
    out = b""
    for one in pieces:
        delta = {"content": one} if isinstance(one, str) else {"tool_calls": [one]}
        if isinstance(one, dict) and "index" not in one:
            delta = {"function_call": one}
        out += writer.feed(json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode())
    out += writer.feed(b'{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}') + writer.end()
    return _READ[surface](out)


def data(out: bytes) -> list[Any]:
    return [json.loads(line[6:]) for line in out.split(b"\n") if line.startswith(b"data: ")]


def of_messages(out: bytes) -> list[tuple[str, Any]]:
    names: dict[int, str] = {}
    inputs: dict[int, str] = {}
    for event in data(out):
        if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use":
            names[event["index"]], inputs[event["index"]] = event["content_block"]["name"], ""
        if event["type"] == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
            inputs[event["index"]] += event["delta"]["partial_json"]
    return [(name, json.loads(inputs[index] or "{}")) for index, name in names.items()]


def of_responses(out: bytes) -> list[tuple[str, Any]]:
    events = data(out)
    deltas: dict[str, str] = {}
    for event in events:
        if event["type"] == "response.function_call_arguments.delta":
            deltas[event["item_id"]] = deltas.get(event["item_id"], "") + event["delta"]
    calls = [item for item in events[-1]["response"]["output"] if item["type"] == "function_call"]
    assert [item["arguments"] for item in calls] == [deltas[item["id"]] for item in calls]
    begun = [event["item"] for event in events if event["type"] == "response.output_item.added"]
    assert [item["name"] for item in begun if item["type"] == "function_call"] == [item["name"] for item in calls]
    return [(item["name"], json.loads(item["arguments"])) for item in calls]


def of_ollama(out: bytes) -> list[tuple[str, Any]]:
    lines = [json.loads(line) for line in out.splitlines()]
    calls = [call["function"] for line in lines for call in line["message"].get("tool_calls", ())]
    return [(call["name"], call["arguments"]) for call in calls]


_READ = {"messages": of_messages, "responses": of_responses, "ollama_chat": of_ollama}


@pytest.mark.parametrize("surface", _SURFACES)
def test_a_name_in_pieces_is_whole(surface: str) -> None:
    joined = written(
        surface, piece(0, "ge", "", "c0"), piece(0, "t_", ""), piece(0, "x", '{"a"'), piece(0, None, ":1}")
    )
    assert joined == [("get_x", {"a": 1})]


@pytest.mark.parametrize("surface", _SURFACES)
def test_it_is_whole_where_the_next_call_begins_or_text_does(surface: str) -> None:
    calls = (piece(0, "ge", "", "c0"), piece(0, "t"), piece(1, "se", "", "c1"), piece(1, "t"), "done")
    assert written(surface, *calls) == [("get", {}), ("set", {})]


@pytest.mark.parametrize("surface", _SURFACES)
def test_a_name_that_comes_with_every_piece_is_not_joined(surface: str) -> None:
    assert written(surface, piece(0, "get", "", "c0"), piece(0, "get", "{"), piece(0, "get", "}")) == [("get", {})]


@pytest.mark.parametrize("surface", _SURFACES)
def test_a_name_may_come_after_its_arguments_have_begun(surface: str) -> None:
    pieces = piece(0, None, '{"a"', "c0"), piece(0, "get"), piece(0, None, ":1}")
    assert written(surface, *pieces) == [("get", {"a": 1})]


@pytest.mark.parametrize("surface", _SURFACES)
def test_a_function_call_of_the_api_before_tool_calls_is_one(surface: str) -> None:
    pieces = {"name": "get", "arguments": ""}, {"arguments": '{"a"'}, {"arguments": ":1}"}
    assert written(surface, *pieces) == [("get", {"a": 1})]
    way = translation(surface, "chat")
    message = {"content": None, "function_call": {"name": "get", "arguments": '{"a":1}'}}
    chat = {"choices": [{"message": message, "finish_reason": "function_call"}]}
    told = way.answer(json.dumps(chat).encode(), way.request(_BODIES[surface]).context, _STAMP)
    assert b'"name":"get"' in told
    with pytest.raises(StreamBroken):
        written(surface, {"name": 7})


def test_chat_has_it_put_together_as_it_is() -> None:
    assembler = Assembler("chat")
    for function in ({"name": "get", "arguments": ""}, {"arguments": '{"a"'}, {"arguments": ":1}"}):
        choice = {"index": 0, "delta": {"function_call": function}}
        assembler.feed(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n")
    assembler.feed(b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}\n\n')
    message = json.loads(assembler.result())["choices"][0]["message"]
    assert message["function_call"] == {"name": "get", "arguments": '{"a":1}'}


@pytest.mark.parametrize("surface", _SURFACES)
def test_a_call_without_arguments_has_an_empty_object(surface: str) -> None:
    assert written(surface, piece(0, "now", "", "c0")) == [("now", {})]


def test_a_whole_answer_of_responses_has_one_too() -> None:
    way = translation("responses", "chat")
    call = {"id": "c", "type": "function", "function": {"name": "now", "arguments": ""}}
    chat = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    told = json.loads(way.answer(json.dumps(chat).encode(), way.request(_BODIES["responses"]).context, _STAMP))
    assert told["output"][0]["arguments"] == "{}"


def test_chat_has_one_of_a_message_without_input() -> None:
    way = translation("chat", "messages")
    body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"a"}]}'
    writer = way.writer(way.request(body).context, _STAMP)
    block = {"type": "tool_use", "id": "t", "name": "now", "input": {}}
    events = (
        {"type": "message_start", "message": {"content": [], "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ""}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    )
    out = b"".join(writer.feed(json.dumps(event).encode()) for event in events)
    chunks = [choice["delta"] for chunk in data(out) for choice in chunk["choices"]]
    calls = [call for delta in chunks for call in delta.get("tool_calls", ())]
    assert "".join(call["function"]["arguments"] for call in calls) == "{}"

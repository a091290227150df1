"""No client is told of a tool call with other arguments than the model's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import StreamBroken
from tests.wire.told_by_chat import DONE, chunk, streamed, whole

OBJECTS = ("messages", "ollama_chat")


def call(index: int, name: str | None, arguments: Any) -> dict[str, Any]:
    return {"index": index, "id": f"c{index}", "type": "function", "function": {"name": name, "arguments": arguments}}


def told_by(surface: str, answer: Any) -> tuple[list[Any], str]:
    """The calls, and why the answer ended."""
    if surface == "messages":
        calls = [(block["name"], block["input"]) for block in answer["content"] if block["type"] == "tool_use"]
        return calls, answer["stop_reason"]
    made = answer["message"].get("tool_calls", ())
    return [(one["function"]["name"], one["function"]["arguments"]) for one in made], answer["done_reason"]


@pytest.mark.parametrize("surface", OBJECTS)
@pytest.mark.parametrize(
    ("name", "arguments"), [("g", '{"x":'), ("g", ""), ("g", None), (None, "")], ids=["half", "blank", "none", "name"]
)
def test_a_call_that_the_budget_cut_off_is_left_out(surface: str, name: str | None, arguments: Any) -> None:
    calls = [call(0, "f", '{"a":1}'), call(1, name, arguments)]
    found, reason = told_by(surface, whole(surface, {"tool_calls": calls}, "length"))
    assert (found, reason) == ([("f", {"a": 1})], "max_tokens" if surface == "messages" else "length")


@pytest.mark.parametrize("surface", OBJECTS)
@pytest.mark.parametrize("arguments", ['{"x":', "[1]", "x", "{}{}"])
def test_arguments_that_are_no_object_are_a_failure_of_an_answer_that_was_not_cut(surface: str, arguments: str) -> None:
    one = {"tool_calls": [call(0, "f", arguments)]}
    with pytest.raises(StreamBroken):
        whole(surface, one, "tool_calls")
    with pytest.raises(StreamBroken):
        streamed(surface, chunk(one), chunk({}, "tool_calls"), DONE)


def test_ollama_streams_no_call_that_was_cut() -> None:
    events = [chunk({"tool_calls": [call(0, "f", '{"a":1}')]}), chunk({"tool_calls": [call(1, "g", '{"x":')]})]
    lines = [json.loads(line) for line in streamed("ollama_chat", *events, chunk({}, "length"), DONE).splitlines()]
    calls = [one["function"]["name"] for line in lines for one in line["message"].get("tool_calls", ())]
    assert (calls, lines[-1]["done_reason"]) == (["f"], "length")
    alone = streamed("ollama_chat", events[1], chunk({}, "length"), DONE)
    assert b"tool_calls" not in alone


def test_a_message_begins_no_call_that_was_cut() -> None:
    # The first is still open when the answer ends: the second has not begun and is left out.
    events = [chunk({"tool_calls": [call(0, "f", '{"a":')]}), chunk({"tool_calls": [call(1, "g", '{"x":')]})]
    out = streamed("messages", *events, chunk({}, "length"), DONE)
    assert (b'"name":"f"' in out, b'"name":"g"' in out, b'"stop_reason":"max_tokens"' in out) == (True, False, True)
    nameless = streamed("messages", chunk({"tool_calls": [call(0, None, "")]}), chunk({}, "length"), DONE)
    assert b"tool_use" not in nameless


def test_a_response_has_the_arguments_as_they_came_and_is_incomplete() -> None:
    told = whole("responses", {"tool_calls": [call(0, "f", '{"x":')]}, "length")
    assert told["status"] == "incomplete"
    assert [(item["arguments"], item["status"]) for item in told["output"]] == [('{"x":', "incomplete")]


@pytest.mark.parametrize(("kind", "member"), [("local_shell", "action"), ("custom", "input")])
def test_neither_has_a_response_a_command_or_an_input_that_nobody_wrote(kind: str, member: str) -> None:
    tools = [{"type": kind, "name": "edit"}] if kind == "custom" else [{"type": kind}]
    name = "edit" if kind == "custom" else kind
    told = whole("responses", {"tool_calls": [call(0, name, '{"comm')]}, "length", tools=tools)
    assert told["output"][0]["status"] == "incomplete"
    assert told["output"][0][member] == ("" if kind == "custom" else {"type": "exec", "command": [], "env": {}})

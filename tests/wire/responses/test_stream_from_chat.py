"""A chat stream as the stream of a response."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import StreamBroken
from gateway.wire.responses.answer_from_chat import answer
from gateway.wire.responses.request_to_chat import to_chat
from gateway.wire.responses.stream_from_chat import ResponseWriter
from gateway.wire.sse import Framer, data_of
from gateway.wire.translation import Stamp
from tests.recordings import FOLDER, pairs, streams
from tests.wire.responses.checked import events, final_response, payloads, response

STAMP = Stamp("abc123", 1_764_000_000, "alias", True)
TOOLS = [
    {"type": "custom", "name": "apply_patch", "description": "Edits."},
    {"type": "local_shell"},
    {"type": "tool_search", "execution": "client", "description": "Finds.", "parameters": {"type": "object"}},
    {
        "type": "namespace",
        "name": "agents",
        "description": "Others.",
        "tools": [{"type": "function", "name": "spawn", "parameters": {"type": "object"}}],
    },
]


def context(**members: Any) -> object:
    return to_chat(json.dumps({"model": "m", "input": "hi", "stream": True, **members}).encode()).context


def chunk(delta: dict[str, Any], reason: str | None = None, **choice: Any) -> bytes:
    told = {"index": 0, "delta": delta, "finish_reason": reason, **choice}
    return json.dumps({"object": "chat.completion.chunk", "choices": [told]}).encode()


def tool(index: int | None, name: str | None, arguments: str | None, call_id: str | None = None) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    call = {"index": index, "id": call_id, "function": function}
    return {"tool_calls": [{key: value for key, value in call.items() if value is not None}]}


def written(*chunks: bytes, asked: object = None) -> bytes:
    writer = ResponseWriter(context() if asked is None else asked, STAMP)
    return b"".join(map(writer.feed, chunks)) + writer.end()


def kinds(body: bytes) -> list[str]:
    return [payload["type"].removeprefix("response.") for payload in payloads(body)]


def last(body: bytes) -> dict[str, Any]:
    told: dict[str, Any] = payloads(body)[-1]["response"]
    return told


USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
FIGURES = json.dumps({"choices": [], "usage": USAGE}).encode()


def test_text_with_all_its_events() -> None:
    body = written(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hel"}),
        chunk({"content": "lo"}, "stop"),
        FIGURES,
    )
    assert kinds(body) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    events(body)
    made = final_response(body)
    assert made.output_text == "Hello"
    assert (made.id, made.model, made.status, made.created_at) == ("resp_abc123", "alias", "completed", 1_764_000_000)
    assert last(body)["usage"] == {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 14,
    }


def test_nothing_comes_after_the_terminal_event() -> None:
    body = written(chunk({"content": "x"}, "stop"), b"[DONE]")
    assert body.endswith(b"}}\n\n")
    assert b"[DONE]" not in body


def test_the_settings_of_the_request_are_told() -> None:
    asked = context(
        instructions="be kind", tools=TOOLS, temperature=0.5, metadata={"a": "b"}, reasoning={"effort": "low"}
    )
    told = last(written(chunk({"content": "x"}, "stop"), asked=asked))
    assert (told["instructions"], told["temperature"], told["metadata"]) == ("be kind", 0.5, {"a": "b"})
    assert told["tools"] == TOOLS
    assert (told["reasoning"], told["tool_choice"], told["store"]) == ({"effort": "low"}, "auto", False)


def test_r1_reasoning_by_either_name() -> None:
    body = written(chunk({"reasoning": "a"}), chunk({"reasoning_content": "b"}), chunk({"content": "c"}, "stop"))
    assert "reasoning_text.delta" in kinds(body)
    events(body)
    made = final_response(body)
    assert made.output[0].to_dict()["content"] == [{"text": "ab", "type": "reasoning_text"}]
    assert made.output_text == "c"


def test_reasoning_stands_as_the_summary_where_one_was_asked_for() -> None:
    body = written(
        chunk({"reasoning": "a"}), chunk({"content": "c"}, "stop"), asked=context(reasoning={"summary": "auto"})
    )
    assert [kind for kind in kinds(body) if "summary" in kind] == [
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
    ]
    events(body)
    assert last(body)["output"][0]["summary"] == [{"type": "summary_text", "text": "a"}]


def test_thoughts_between_texts_are_items_of_their_own() -> None:
    deltas = [{"reasoning": "a"}, {"content": "b"}, {"reasoning": "c"}, {"content": "d"}]
    body = written(*map(chunk, deltas), chunk({}, "stop"))
    assert [item["type"] for item in last(body)["output"]] == ["reasoning", "message", "reasoning", "message"]
    final_response(body)


def test_r2_parallel_calls_whose_fragments_alternate() -> None:
    body = written(
        chunk({"content": "I call"}),
        chunk(tool(0, "f", "", "a")),
        chunk(tool(1, "g", '{"', "b")),
        chunk({"tool_calls": [*tool(0, None, '{"x":')["tool_calls"], *tool(1, None, 'y":2')["tool_calls"]]}),
        chunk({"tool_calls": [*tool(0, None, "1}")["tool_calls"], {"index": 1, "function": {"arguments": None}}]}),
        chunk(tool(1, None, "}"), "tool_calls"),
    )
    events(body)
    made = final_response(body)
    calls = [item for item in made.output if item.type == "function_call"]
    assert [(call.call_id, call.name, call.arguments) for call in calls] == [
        ("a", "f", '{"x":1}'),
        ("b", "g", '{"y":2}'),
    ]
    grown: dict[str, str] = {}
    for payload in payloads(body):
        if payload["type"] == "response.function_call_arguments.delta":
            grown[payload["item_id"]] = grown.get(payload["item_id"], "") + payload["delta"]
    assert grown == {"fc_abc123_1": '{"x":1}', "fc_abc123_2": '{"y":2}'}


def test_calls_of_every_kind_are_the_clients_own_items() -> None:
    body = written(
        chunk(tool(0, "apply_patch", '{"input": "*** Begin', "a")),
        chunk(tool(0, None, ' Patch\\n\\u00e9"}')),
        chunk(tool(1, "agents__spawn", '{"n":1}', "b")),
        chunk(tool(2, "local_shell", '{"command":["ls","-l"],"timeout_ms":5}', "c")),
        chunk(tool(3, "tool_search", '{"query":"q"}', "d")),
        chunk(tool(4, "made_up", "{}", "e"), "tool_calls"),
        asked=context(tools=TOOLS),
    )
    events(body)
    final_response(body)
    custom, spaced, shell, search, unknown = last(body)["output"]
    assert (custom["type"], custom["name"], custom["input"]) == (
        "custom_tool_call",
        "apply_patch",
        "*** Begin Patch\né",
    )
    assert (spaced["name"], spaced["namespace"], spaced["arguments"]) == ("spawn", "agents", '{"n":1}')
    assert shell["action"] == {"type": "exec", "command": ["ls", "-l"], "env": {}, "timeout_ms": 5}
    assert (search["type"], search["execution"], search["arguments"]) == ("tool_search_call", "client", {"query": "q"})
    assert (unknown["type"], unknown["name"], unknown.get("namespace")) == ("function_call", "made_up", None)
    deltas = [one["delta"] for one in payloads(body) if one["type"] == "response.custom_tool_call_input.delta"]
    assert deltas == ["*** Begin", " Patch\né"]


@pytest.mark.parametrize(
    ("arguments", "command"),
    [('{"command":"ls | wc"}', ["bash", "-lc", "ls | wc"]), ("", [])],
)
def test_a_shells_command_in_other_words(arguments: str, command: list[str]) -> None:
    body = written(chunk(tool(0, "local_shell", arguments, "c"), "tool_calls"), asked=context(tools=TOOLS))
    assert last(body)["output"][0]["action"]["command"] == command


@pytest.mark.parametrize("name", ["local_shell", "tool_search"])
def test_what_is_no_object_is_no_call_of_a_tool_that_takes_one(name: str) -> None:
    call = chunk(tool(0, name, "not json", "c"), "tool_calls")
    with pytest.raises(StreamBroken):
        written(call, asked=context(tools=TOOLS))


def test_calls_without_an_index_or_all_with_the_same() -> None:
    body = written(chunk(tool(0, "f", '{"a":1}', "a")), chunk(tool(0, "g", '{"b":1}', "b")), chunk({}, "tool_calls"))
    assert [item["arguments"] for item in last(body)["output"]] == ['{"a":1}', '{"b":1}']
    body = written(chunk(tool(None, "f", "{", "a")), chunk(tool(None, None, "}")), chunk({}, "tool_calls"))
    assert [item["arguments"] for item in last(body)["output"]] == ["{}"]


def test_a_call_without_an_id_gets_one() -> None:
    body = written(chunk(tool(0, "f", "{}"), "tool_calls"))
    assert last(body)["output"][0]["call_id"] == "call_abc123_0"


def test_a_call_whose_name_comes_late() -> None:
    body = written(chunk(tool(0, None, "{", "a")), chunk(tool(0, "f", "}")), chunk({}, "tool_calls"))
    assert last(body)["output"][0]["arguments"] == "{}"
    with pytest.raises(StreamBroken):
        written(chunk(tool(0, None, "{}", "a"), "tool_calls"))


@pytest.mark.parametrize(("reason", "told"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_an_answer_that_was_cut_is_incomplete(reason: str, told: str) -> None:
    body = written(chunk({"reasoning": "r"}), chunk({"content": "x"}), chunk({}, reason), FIGURES)
    assert kinds(body)[-1] == "incomplete"
    events(body)
    made = last(body)
    assert (made["status"], made["incomplete_details"]) == ("incomplete", {"reason": told})
    assert [item["status"] for item in made["output"]] == ["completed", "incomplete"]
    assert made["usage"]["total_tokens"] == 14


def test_a_refusal_is_a_part_of_its_own() -> None:
    body = written(chunk({"content": "well"}), chunk({"refusal": "I "}), chunk({"refusal": "won't"}, "stop"))
    events(body)
    assert last(body)["output"][0]["content"][1] == {"type": "refusal", "refusal": "I won't"}


def test_log_probabilities_where_they_were_asked_for() -> None:
    entry = {"token": "x", "logprob": -0.5, "bytes": [120], "id": 3, "top_logprobs": [{"token": "y", "logprob": -1}]}
    told = chunk({"content": "x"}, "stop", logprobs={"content": [entry]})
    body = written(told, asked=context(include=["message.output_text.logprobs"], top_logprobs=1))
    events(body)
    assert last(body)["output"][0]["content"][0]["logprobs"] == [
        {
            "token": "x",
            "bytes": [120],
            "logprob": -0.5,
            "top_logprobs": [{"token": "y", "bytes": [], "logprob": -1}],
        }
    ]
    assert last(written(told))["output"][0]["content"][0]["logprobs"] == []


def test_an_answer_of_nothing() -> None:
    body = written(chunk({}, "stop"))
    events(body)
    assert last(body)["output"] == []
    assert last(body)["usage"] is None
    final_response(body)


def test_text_of_parts_and_numbers_that_are_none() -> None:
    body = written(
        b'{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"x"}]},"logprobs":{"content":[{"logprob":NaN}]}}]}',
        b'{"choices":[{"index":0,"delta":{"content":"\\ud83d"},"finish_reason":"stop"}],"timings":{"a":1e999}}',
        asked=context(include=["message.output_text.logprobs"]),
    )
    assert last(body)["output"][0]["content"][0]["text"] == "x\ufffd"


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"choices":5}', b'{"error":{"message":"x"}}', b"\xff", b"5"])
def test_what_is_no_chunk_breaks_the_stream(data: bytes) -> None:
    with pytest.raises(StreamBroken):
        ResponseWriter(None, STAMP).feed(data)


def chats() -> list[tuple[str, bytes]]:
    return [(name, body) for name, body in streams() if "completions" not in name and b'"error"' not in body]


def translated(pieces: list[bytes]) -> bytes:
    framer = Framer()
    writer = ResponseWriter(None, STAMP)
    out = []
    for piece in pieces:
        for event in framer.feed(piece):
            data = data_of(event)
            if data is not None:
                out.append(writer.feed(data))
    return b"".join(out) + writer.end()


@pytest.mark.parametrize(("name", "body"), chats(), ids=[name for name, _ in chats()])
def test_recorded_streams_cut_at_every_byte(name: str, body: bytes) -> None:
    body = body[: body.index(b"\n\n", min(3000, len(body) - 3)) + 2]
    whole = translated([body])
    events(whole)
    framed = Framer().feed(body)
    for at in range(len(body)):  # the same events, and so the same is made of them
        framer = Framer()
        assert framer.feed(body[:at]) + framer.feed(body[at:]) == framed
    for at in range(0, len(body), 97):
        assert translated([body[:at], body[at:]]) == whole
    assert translated([body[at : at + 1] for at in range(len(body))]) == whole


@pytest.mark.parametrize("name", [name for name in pairs() if name.startswith("chat_") and "n2" not in name])
def test_a_stream_and_the_whole_answer_are_the_same_response(name: str) -> None:
    folder = FOLDER / "llama.cpp" / "pairs"
    streamed = last(translated([(folder / f"{name}.sse").read_bytes()]))
    whole = answer((folder / f"{name}.json").read_bytes(), None, STAMP)
    response(whole)
    assert without_figures(streamed) == without_figures(json.loads(whole))


def without_figures(told: dict[str, Any]) -> dict[str, Any]:
    usage = told.pop("usage")
    usage["input_tokens_details"].pop("cached_tokens")  # the second run found more in the cache
    for item in told["output"]:
        item.pop("call_id", None)
    return {**told, "usage": usage}

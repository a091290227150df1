from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import StreamBroken
from gateway.wire.assemble import Assembler
from gateway.wire.sse import Framer
from tests.recordings import FOLDER, pairs, recording

PAIRS = FOLDER / "llama.cpp" / "pairs"


def assembled(surface: str, body: bytes) -> Assembler:
    assembler = Assembler(surface)
    for event in Framer().feed(body):
        assembler.feed(event)
    return assembler


def comparable(body: bytes) -> dict[str, Any]:
    """What must be equal between two runs: all but ids, times and speeds, which must be there all the same."""
    answer = json.loads(body)
    answer["id"] = type(answer["id"])
    answer["created"] = type(answer["created"])
    answer["timings"] = {
        key: value if key.endswith("_n") else isinstance(value, int | float) for key, value in answer["timings"].items()
    }
    for choice in answer["choices"]:
        for call in choice.get("message", {}).get("tool_calls", ()):
            call["id"] = len(call["id"])
    return answer


def key_order(value: Any) -> Any:
    if isinstance(value, dict):
        return [(key, key_order(inner)) for key, inner in value.items()]
    return [key_order(inner) for inner in value] if isinstance(value, list) else None


@pytest.mark.parametrize("name", pairs())
def test_it_is_the_answer_that_the_engine_itself_gives(name: str) -> None:
    whole = (PAIRS / f"{name}.json").read_bytes()
    made = assembled(name.split("_")[0], (PAIRS / f"{name}.sse").read_bytes()).result()
    assert comparable(made) == comparable(whole)
    assert key_order(json.loads(made)) == key_order(json.loads(whole))


def test_figures_are_the_streams_own_to_the_last_digit() -> None:
    body = recording("llama.cpp", "chat_stream_usage").body
    made = assembled("chat", body).result()
    usage_and_timings = body[body.index(b'"usage":') : body.index(b"}\n\ndata: [DONE]")]
    usage, timings = usage_and_timings.split(b',"timings":')
    assert usage in made
    assert b'"timings":' + timings in made


def test_usage_and_finish_reason_of_the_exchange() -> None:
    one = assembled("chat", (PAIRS / "chat_plain.sse").read_bytes())
    assert one.usage is not None
    assert one.usage.completion_tokens == 10
    assert one.finish_reason == "length"
    two = assembled("chat", (PAIRS / "chat_n2.sse").read_bytes())
    assert two.usage is not None
    assert two.usage.completion_tokens == 10  # five for each of two choices; the answer itself tells one
    assert json.loads(two.result())["usage"]["completion_tokens"] == 5


def test_interleaved_tool_calls_keep_their_fragments_apart() -> None:
    def chunk(calls: list[dict[str, Any]], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": {"tool_calls": calls}, "finish_reason": reason}
        return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"

    body = (
        chunk([{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}])
        + chunk([{"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": '{"'}}])
        + chunk([{"index": 0, "function": {"arguments": '{"x":'}}, {"index": 1, "function": {"arguments": 'y":2'}}])
        + chunk([{"index": 0, "function": {"arguments": "1}"}}, {"index": 1, "function": {"arguments": None}}])
        + chunk([{"index": 1, "function": {"arguments": "}"}}], "tool_calls")
    )
    message = json.loads(assembled("chat", body).result())["choices"][0]["message"]
    assert [
        (call["id"], call["function"]["name"], call["function"]["arguments"]) for call in message["tool_calls"]
    ] == [
        ("a", "f", '{"x":1}'),
        ("b", "g", '{"y":2}'),
    ]


@pytest.mark.parametrize("name", ["chat_stream_nousage", "chat_n2_stream"])
def test_a_cut_stream_is_no_answer(name: str) -> None:
    events = Framer().feed(recording("llama.cpp", name).body)
    last = max(i for i, event in enumerate(events) if b'"finish_reason":"' in event)
    for cut in range(last + 1):
        with pytest.raises(StreamBroken):
            assembled("chat", b"".join(events[:cut])).result()
    assert assembled("chat", b"".join(events[: last + 1])).result()


@pytest.mark.parametrize("event", [b"data: {\n\n", b"data: [1]\n\n", b'data: {"choices":[{"index":"x"}]}\n\n'])
def test_what_is_no_chunk_breaks_the_stream(event: bytes) -> None:
    with pytest.raises(StreamBroken):
        Assembler("chat").feed(event)


def test_comments_and_marks_add_nothing() -> None:
    body = recording("llama.cpp", "sse_ping_during_prefill").body
    assert json.loads(assembled("chat", body).result())["choices"][0]["message"]["content"] == "This is"


FINISHED = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'


def test_members_that_are_not_text_are_kept_as_the_last_one_came() -> None:
    assembler = Assembler("chat")
    for value in ("[1]", "[2]", '{"a":1}'):
        assembler.feed(b'data: {"choices":[{"index":0,"delta":{"content":"c","x_foo":%b}}]}\n\n' % value.encode())
    assembler.feed(FINISHED)
    assert json.loads(assembler.result())["choices"][0]["message"] == {
        "role": "assistant",
        "content": "ccc",
        "x_foo": {"a": 1},
    }


@pytest.mark.parametrize(
    "delta",
    [
        '{"tool_calls":[5]}',
        '{"tool_calls":[{"index":"a","function":{"name":"f"}}]}',
        '{"tool_calls":[{"index":[],"function":{"name":"f"}}]}',
        '{"tool_calls":[{"index":0,"function":"f"}]}',
        '{"tool_calls":[{"index":0,"function":{"name":7}}]}',
        "5",
    ],
)
def test_a_shape_that_no_answer_has_is_a_broken_stream(delta: str) -> None:
    with pytest.raises(StreamBroken):
        Assembler("chat").feed(b'data: {"choices":[{"index":0,"delta":%b}]}\n\n' % delta.encode())


def test_figures_too_big_to_be_read_are_none() -> None:
    assembler = Assembler("chat")
    assembler.feed(b'data: {"choices":null}\n\n')
    assembler.feed(FINISHED)
    assembler.feed(b'data: {"choices":[],"usage":{"prompt_tokens":1%b,"completion_tokens":1e400}}\n\n' % (b"0" * 400))
    assert assembler.usage is None
    assert json.loads(assembler.result())["choices"][0]["finish_reason"] == "stop"

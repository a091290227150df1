from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import StreamBroken
from gateway.wire.assemble import Assembler
from gateway.wire.chat_stream import ChatStream
from gateway.wire.ollama.answer_from_chat import answer
from gateway.wire.ollama.asked import Asked
from gateway.wire.ollama.assemble import OllamaAssembler
from gateway.wire.ollama.stream import OllamaStream
from gateway.wire.ollama.stream_from_chat import OllamaWriter
from gateway.wire.sse import Framer
from tests.recordings import streams
from tests.wire.ollama.samples import CREATED, STAMP, checked, framed, objects, written

ONE_CHOICE = [
    (name, body)
    for name, body in streams()
    if not any(odd in name for odd in ("n2", "n3", "list", "kv_unified", "multi", "echo", "ids"))
]
recorded = pytest.mark.parametrize(("name", "body"), ONE_CHOICE, ids=[name for name, _ in ONE_CHOICE])


def chat(message: dict[str, Any], reason: str | None = "stop", **members: Any) -> Any:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    body = json.dumps({"id": "x", "choices": [choice], **members}).encode()
    whole = answer(body, Asked(), STAMP)
    checked(whole)
    return json.loads(whole)


def chunks(*deltas: dict[str, Any], reason: str | None = "stop", **members: Any) -> bytes:
    found = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    found.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], **members})
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in found) + b"data: [DONE]\n\n"


def call(index: int, **members: Any) -> dict[str, Any]:
    return {"index": index, **members}


@recorded
def test_a_recorded_stream_and_its_whole_answer_say_the_same(name: str, body: bytes) -> None:
    surface = "completions" if "completions" in name else "chat"
    view, assembler, framer = ChatStream(surface), Assembler(surface), Framer()
    for event in [*framer.feed(body), *framer.end()]:
        view.see(event)
        assembler.feed(event)
    if not view.terminal:
        pytest.skip("a stream that breaks off")
    generate = surface == "completions"
    lines = written(body, generate=generate)
    again = OllamaAssembler()
    for line in framed([lines]):
        checked(line, generate=generate)
        again.feed(line)
    whole = answer(assembler.result(), Asked(generate=generate), STAMP)
    checked(whole, generate=generate)
    assert json.loads(again.result()) == json.loads(whole)
    told = json.loads(whole)
    assert (told["model"], told["created_at"], told["done"]) == ("lake", CREATED, True)
    assert told["done_reason"] == ("length" if view.finish_reason == "length" else "stop")
    usage = view.usage
    assert told["eval_count"] == ((usage.completion_tokens or 0) if usage is not None else 0)
    native = OllamaStream()
    for line in framed([lines]):
        native.see(line)
    assert native.terminal
    assert native.finish_reason == (view.finish_reason if native.finish_reason != "tool_calls" else "tool_calls")


def test_figures_are_there_whatever_the_engine_tells() -> None:
    assert chat({"content": "Deep."}) == {
        "model": "lake",
        "created_at": CREATED,
        "message": {"role": "assistant", "content": "Deep."},
        "done": True,
        "done_reason": "stop",
        "total_duration": 0,
        "load_duration": 0,
        "prompt_eval_count": 0,
        "prompt_eval_duration": 0,
        "eval_count": 0,
        "eval_duration": 0,
    }
    usage = {"prompt_tokens": 30, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 10}}
    timed = chat({"content": "x"}, "length", usage=usage, timings={"prompt_ms": 20.5, "predicted_ms": 81.25})
    assert timed["done_reason"] == "length"
    assert {key: value for key, value in timed.items() if key.endswith(("duration", "count"))} == {
        "total_duration": 101_750_000,
        "load_duration": 0,
        "prompt_eval_count": 30,
        "prompt_eval_duration": 20_500_000,
        "eval_count": 4,
        "eval_duration": 81_250_000,
        "prompt_eval_cached_count": 10,
    }


def test_r1_reasoning_under_either_name_is_thinking() -> None:
    for name in ("reasoning", "reasoning_content"):
        assert chat({"content": "x", name: "hm"})["message"] == {"role": "assistant", "content": "x", "thinking": "hm"}
        lines = objects(written(chunks({name: "h"}, {name: "m", "content": None}, {"content": "x"})))
        assert [line["message"].get("thinking") for line in lines] == ["h", "m", None, None]
    generated = objects(written(chunks({"reasoning": "hm"}, {"content": "x"}), generate=True))
    assert [(line["response"], line.get("thinking")) for line in generated] == [("", "hm"), ("x", None), ("", None)]


def test_tool_calls_are_objects() -> None:
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"b":1,\n "a": "x"}'}},
        {"function": {"name": "g", "arguments": ""}},
        {"function": {"name": "i", "arguments": {"a": 1}}},
    ]
    found = chat({"content": None, "tool_calls": calls}, "tool_calls")
    assert found["done_reason"] == "stop"
    assert found["message"]["content"] == ""
    assert found["message"]["tool_calls"] == [
        {"id": "c1", "function": {"index": 0, "name": "f", "arguments": {"b": 1, "a": "x"}}},
        {"id": "call_a1b2_1", "function": {"index": 1, "name": "g", "arguments": {}}},
        {"id": "call_a1b2_2", "function": {"index": 2, "name": "i", "arguments": {"a": 1}}},
    ]


def test_r2_interleaved_calls_are_sent_whole_on_one_line() -> None:
    lines = written(
        chunks(
            {"content": "Let me see"},
            {"tool_calls": [call(0, id="a", function={"name": "f", "arguments": ""})]},
            {"tool_calls": [call(1, id="b", function={"name": "g", "arguments": '{"x"'})]},
            {"tool_calls": [call(0, function={"arguments": '{"y":\r\n [1'})]},
            {
                "tool_calls": [
                    call(1, function={"name": None, "arguments": ":2}"}),
                    call(0, function={"arguments": "]"}),
                ]
            },
            {"tool_calls": [call(0, id=None, function={"arguments": "} "})]},
            reason="tool_calls",
        )
    )
    found = objects(lines)
    assert len(found) == 3
    assert found[1]["message"] == {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "a", "function": {"index": 0, "name": "f", "arguments": {"y": [1]}}},
            {"id": "b", "function": {"index": 1, "name": "g", "arguments": {"x": 2}}},
        ],
    }
    assert (found[1]["done"], found[2]["done_reason"]) == (False, "stop")


def test_calls_of_engines_that_number_them_oddly() -> None:
    same = written(
        chunks(
            {"tool_calls": [call(0, id="a", function={"name": "f", "arguments": "{}"})]},
            {"tool_calls": [call(0, id="b", function={"name": "g", "arguments": "{}"})]},
        )
    )
    none = written(
        chunks(
            {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{"}}]},
            {"tool_calls": [{"function": {"arguments": "}"}}]},
            {"tool_calls": [{"id": "b", "function": {"name": "g", "arguments": {"x": 1}}}]},
        )
    )
    for lines in (same, none):
        calls = objects(lines)[0]["message"]["tool_calls"]
        assert [(one["id"], one["function"]["name"]) for one in calls] == [("a", "f"), ("b", "g")]


def test_log_probabilities_of_every_shape() -> None:
    entry = {"token": "a", "logprob": -0.5, "bytes": [97], "id": 7, "top_logprobs": [{"token": "b", "logprob": -1.0}]}
    lost = {"token": "c", "logprob": None}
    expected = [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": [{"token": "b", "logprob": -1.0}]}]
    choice = {"index": 0, "message": {"content": "a"}, "finish_reason": "stop", "logprobs": {"content": [entry, lost]}}
    assert json.loads(answer(json.dumps({"choices": [choice]}).encode(), None, STAMP))["logprobs"] == expected
    columns = {"tokens": ["a", "c"], "token_logprobs": [-0.5, None], "top_logprobs": [{"b": -1.0}, None]}
    choice = {"index": 0, "text": "a", "finish_reason": "stop", "logprobs": columns}
    whole = answer(json.dumps({"choices": [choice]}).encode(), Asked(generate=True), STAMP)
    assert json.loads(whole)["logprobs"] == [{key: value for key, value in expected[0].items() if key != "bytes"}]
    checked(whole, generate=True)


def test_line_ends_that_only_httpx_knows_stay_inside_their_line() -> None:
    text = "a\u2028b\u2029c\u0085d\r\ne\x0b\x1c"
    lines = written(chunks({"content": text}, {"reasoning": text}))
    assert [line["message"]["content"] for line in objects(lines)] == [text, "", ""]
    assert chat({"content": text})["message"]["content"] == text


def test_a_refusal_is_text() -> None:
    assert chat({"content": None, "refusal": "No."})["message"]["content"] == "No."
    assert objects(written(chunks({"refusal": "No."})))[0]["message"]["content"] == "No."


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"choices":[]}',
        b'{"choices":{}}',
        b'{"error":{"message":"x"}}',
        b'{"choices":[{"message":{"content":7}}]}',
        b'{"choices":[{"message":{"content":"x","tool_calls":[{}]}}]}',
        b'{"choices":[{"message":{"content":"x","tool_calls":[{"function":{"name":"f","arguments":7}}]}}]}',
        b'{"choices":[{"message":"x"}]}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_what_is_no_answer_breaks_the_stream(body: bytes) -> None:
    with pytest.raises(StreamBroken):
        answer(body, Asked(), STAMP)


@pytest.mark.parametrize(
    "data",
    [
        b"<html>",
        b"[]",
        b'{"error":"x"}',
        b'{"choices":[{"index":0,"delta":{"content":[7],"tool_calls":{}}}]}',
        b'{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":7}}]}}]}',
    ],
)
def test_what_is_no_chunk_breaks_the_stream(data: bytes) -> None:
    with pytest.raises(StreamBroken):
        OllamaWriter(Asked(), STAMP).feed(data)


def test_calls_without_a_name_or_without_end_break_the_stream() -> None:
    with pytest.raises(StreamBroken):
        written(chunks({"tool_calls": [call(0, function={"arguments": "{}"})]}))
    with pytest.raises(StreamBroken):
        written(chunks({"tool_calls": [call(n, function={"name": "f"}) for n in range(1025)]}))


def test_numbers_that_only_clients_in_python_write_are_read() -> None:
    body = (
        b'{"choices":[{"message":{"content":"x"},"finish_reason":"stop","score":NaN}],"usage":{"prompt_tokens":1e400}}'
    )
    assert json.loads(answer(body, None, STAMP))["message"]["content"] == "x"


def test_other_choices_than_the_first_are_left_out() -> None:
    body = b'data: {"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]}\n\n'
    assert [line["message"]["content"] for line in objects(written(body))] == ["a", ""]
    assert written(b"data: null\n\n") == written(b"")

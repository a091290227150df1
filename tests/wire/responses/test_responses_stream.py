"""An engine's own stream of a response on its way to the client, watched and put together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import StreamBroken
from gateway.wire.responses.assemble import ResponseAssembler
from gateway.wire.responses.edits import edits
from gateway.wire.responses.stream import ResponsesStream
from gateway.wire.responses.whole import read_answer
from gateway.wire.splice import splice
from gateway.wire.sse import Framer
from gateway.wire.stream_view import EventKind, Seen
from gateway.wire.usage import Usage
from tests.recordings import recording
from tests.wire.responses.checked import stream_of
from tests.wire.responses.native import LLAMA_TOOLS, OPENAI_TOOLS, response_of

RECORDED = [(engine, recording(engine, "responses_stream").body) for engine in ("llama.cpp", "vllm")]
STREAMS = [*RECORDED, ("openai tools", stream_of(*OPENAI_TOOLS)), ("llama.cpp tools", stream_of(*LLAMA_TOOLS))]
each = pytest.mark.parametrize(("name", "body"), STREAMS, ids=[name for name, _ in STREAMS])


def watched(body: bytes, alias: str | None = None) -> tuple[ResponsesStream, list[Seen]]:
    stream = ResponsesStream(alias)
    framer = Framer()
    return stream, [stream.see(event) for event in framer.feed(body) + framer.end()]


def forwarded(seen: list[Seen]) -> bytes:
    return b"".join(one.forward for one in seen)


def event(**payload: Any) -> bytes:
    return stream_of(payload)


@each
def test_it_passes_byte_for_byte(name: str, body: bytes) -> None:
    stream, seen = watched(body)
    assert forwarded(seen).rstrip() == body.rstrip()
    assert stream.terminal
    assert stream.closing() == b""
    assert [one.kind for one in seen if one.kind is not EventKind.COMMENT][-1] is EventKind.DONE


@each
def test_n1_only_the_responses_own_name_is_another(name: str, body: bytes) -> None:
    _, seen = watched(body, "code")
    shown = forwarded(seen)
    assert shown != body
    model = b'"model":"smollm2"' if name == "llama.cpp" else b'"model":"tiny"'
    if name in ("llama.cpp", "vllm"):
        assert shown.rstrip() == body.replace(model, b'"model":"code"').rstrip()
    for one in seen:
        if b'"response":' in one.forward:
            told = json.loads(one.forward.split(b"data: ", 1)[1])["response"]
            assert told.get("model", "code") == "code"
            for tool in told.get("tools", ()):
                assert tool["parameters"]["model"] == "big"


def test_a_response_event_in_several_lines_is_renamed_too() -> None:
    body = b'event: response.created\ndata: {"type":"response.created",\ndata: "response":{"model":"big"}}\n\n'
    _, (seen,) = watched(body, "code")
    assert seen.forward == body.replace(b"big", b"code")


@pytest.mark.parametrize(
    ("name", "tokens", "reason", "usage"),
    [
        ("llama.cpp", 4, "stop", Usage(33, 4, 32, 0.182807, 0.583689)),
        ("vllm", 2, "length", Usage(15, 3, 0)),
        ("openai tools", 9, "tool_calls", Usage(9, 5, 4)),
        ("llama.cpp tools", 3, "tool_calls", Usage(9, 5, 4, 0.02, 0.05)),
    ],
)
def test_what_it_cost_and_why_it_ended(name: str, tokens: int, reason: str, usage: Usage) -> None:
    stream, _ = watched(dict(STREAMS)[name])
    assert (stream.tokens_seen, stream.finish_reason, stream.usage) == (tokens, reason, usage)


def test_m2_the_first_token_is_no_header() -> None:
    _, seen = watched(dict(STREAMS)["vllm"])
    assert [one.kind for one in seen[:5]] == [
        EventKind.ROLE,
        EventKind.ROLE,
        EventKind.OTHER,
        EventKind.OTHER,
        EventKind.TOKEN,
    ]
    assert [one.token for one in seen].index(True) == 4


@each
def test_s2_every_stream_that_is_cut_is_not_whole(name: str, body: bytes) -> None:
    events = Framer().feed(body)
    last = max(i for i, one in enumerate(events) if b"response.completed" in one)
    for cut in range(last + 1):
        stream, _ = watched(b"".join(events[:cut]))
        assert not stream.terminal
        assembler = ResponseAssembler()
        for one in events[:cut]:
            assembler.feed(one)
        with pytest.raises(StreamBroken):
            assembler.result()


@each
def test_cut_at_every_byte(name: str, body: bytes) -> None:
    whole = forwarded(watched(body, "code")[1])
    framed = Framer().feed(body)
    for at in range(len(body)):
        framer = Framer()
        assert framer.feed(body[:at]) + framer.feed(body[at:]) == framed
    stream, framer = ResponsesStream("code"), Framer()
    out = b"".join(stream.see(one).forward for at in range(len(body)) for one in framer.feed(body[at : at + 1]))
    assert out.rstrip() == whole.rstrip()


FAILURE = {"code": "context_length_exceeded", "message": "too long"}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (event(type="error", code="x", message="m", param=None, sequence_number=1), {"code": "x", "message": "m"}),
        (event(type="error", error=FAILURE, sequence_number=1), FAILURE),
        (event(type="response.failed", response=response_of(status="failed", error=FAILURE)), FAILURE),
        (event(type="response.failed", response={}), {"message": "the engine says that the response failed"}),
        (b'data: {"error":{"message":"m","code":400}}\n\n', {"message": "m", "code": 400}),
        (b'error: {"message":"m","code":400}\n\n', {"message": "m", "code": 400}),
        (b'{"error":{"message":"m"}}\n\n', {"message": "m"}),
        (b"event: error\ndata: 5\n\n", {"message": "5"}),
        (b"data: {\n\n", {"code": 502}),
        (b'event: response.output_text.delta\ndata: {"delta":"x"\n\n', {"code": 502}),
        (b'event: response.output_text.delta\ndata: {"delta":"\xff"}\n\n', {"code": 502}),
    ],
)
def test_s4_errors_in_a_stream(body: bytes, told: dict[str, Any]) -> None:
    _, (seen,) = watched(body)
    assert (seen.kind, seen.forward) == (EventKind.ERROR, b"")
    assert seen.error is not None
    assert seen.error.items() >= told.items()


def test_an_error_that_the_end_cut_short() -> None:
    stream = ResponsesStream()
    assert stream.unfinished(b'data: {"error":{"message":"m"}}\n') == {"message": "m"}
    assert stream.unfinished(b'data: {"type":"response.outp') is None
    assert stream.unfinished(b"") is None


@pytest.mark.parametrize("body", [b"data: [DONE]\n\n", b"data: null\n\n", b"data: \n\n"])
def test_what_no_client_of_this_dialect_reads_is_kept_back(body: bytes) -> None:
    stream, (seen,) = watched(body)
    assert (seen.forward, seen.kind, stream.terminal) == (b"", EventKind.OTHER, False)


def test_comments_and_empty_pieces_are_no_tokens() -> None:
    body = b": ping\n\n" + event(type="response.output_text.delta", delta="", item_id="x")
    body += event(type="response.output_text.delta", delta='"', item_id="x") + b"data: 5\n\n"
    _, seen = watched(body)
    assert [one.kind for one in seen] == [EventKind.COMMENT, EventKind.OTHER, EventKind.TOKEN, EventKind.OTHER]
    assert forwarded(seen) == body


def test_events_without_names_count_too() -> None:
    stream, _ = watched(stream_of(*OPENAI_TOOLS, names=False))
    assert (stream.tokens_seen, stream.terminal) == (9, True)


def test_s6_one_very_long_event() -> None:
    body = event(type="response.output_text.delta", delta="x" * 700_000, item_id="x")
    _, (seen,) = watched(body)
    assert seen == Seen(body, EventKind.TOKEN, None, True)


@each
def test_the_whole_answer_is_that_of_the_terminal_event(name: str, body: bytes) -> None:
    assembler = ResponseAssembler()
    for one in Framer().feed(body):
        assembler.feed(one)
    stream, _ = watched(body)
    assert (assembler.usage, assembler.finish_reason) == (stream.usage, stream.finish_reason)
    assert assembler.result() in body


def test_an_output_that_the_terminal_event_leaves_out() -> None:
    final = {**OPENAI_TOOLS[-1], "response": response_of()}
    assembler = ResponseAssembler()
    for one in Framer().feed(stream_of(*OPENAI_TOOLS[:-1], final)):
        assembler.feed(one)
    assert json.loads(assembler.result())["output"] == OPENAI_TOOLS[-1]["response"]["output"]


def test_a_failed_response_is_no_answer() -> None:
    with pytest.raises(StreamBroken):
        ResponseAssembler().feed(event(type="response.failed", response=response_of(error=FAILURE)))
    with pytest.raises(StreamBroken):
        ResponseAssembler().feed(b'data: {"type":"response.completed",\n\n')


@pytest.mark.parametrize(("engine", "reason", "tokens"), [("llama.cpp", "stop", 8), ("vllm", "length", 4)])
def test_whole_answers_as_recorded(engine: str, reason: str, tokens: int) -> None:
    body = recording(engine, "responses_nonstream").body
    read = read_answer(body, "code")
    assert read is not None
    assert (read.finish_reason, read.usage is not None and read.usage.completion_tokens) == (reason, tokens)
    model = json.loads(body)["model"].encode()
    assert read.body == body.replace(b'"model":"%b"' % model, b'"model":"code"')
    assert read_answer(body, None) == read._replace(body=body)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"output":5}', b'{"error":{"message":"x"},"output":[]}', b'{"status":"failed","output":[]}'],
)
def test_what_is_no_whole_answer(body: bytes) -> None:
    assert read_answer(body, "code") is None


def test_an_answer_for_later_is_one() -> None:
    read = read_answer(json.dumps(response_of(status="queued")).encode(), None)
    assert read is not None
    assert (read.finish_reason, read.usage) == (None, None)


def test_edits_of_a_body_that_passes_through() -> None:
    body = b'{"model":"a","input":"hi" ,"x":1.0}'
    assert (
        splice(body, edits("b", True, 7)) == b'{"model":"b","input":"hi" ,"x":1.0,"stream":true,"max_output_tokens":7}'
    )
    assert edits(None, None, None) == {}

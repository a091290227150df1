from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.wire.anthropic.stream import MessagesStream
from gateway.wire.sse import Framer
from gateway.wire.stream_view import EventKind, Seen, StreamView
from tests.recordings import FOLDER, recording
from tests.wire.anthropic.checked import final_message

K = EventKind
STREAMS = ["llama_cpp_stream", "vllm_stream", "documented_tools_stream"]


def body_of(name: str) -> bytes:
    return recording("anthropic", name).body


def seen(stream: MessagesStream, *parts: bytes) -> list[Seen]:
    framer = Framer()
    found = [event for part in parts for event in framer.feed(part)]
    return [stream.see(event) for event in [*found, *framer.end()]]


def shown(found: list[Seen]) -> bytes:
    return b"".join(one.forward for one in found)


def event(kind: str, **members: Any) -> bytes:
    payload = json.dumps({"type": kind, **members}, separators=(",", ":"))
    return f"event: {kind}\ndata: {payload}\n\n".encode()


def text_event(text: str) -> bytes:
    return event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})


def test_it_is_a_stream_view() -> None:
    view: StreamView = MessagesStream()
    assert (view.terminal, view.usage, view.closing()) == (False, None, b"")


@pytest.mark.parametrize(
    ("name", "tokens", "reason", "usage"),
    [
        ("llama_cpp_stream", 4, "length", (36, 4, 35)),
        ("vllm_stream", 3, "length", (20, 3, 0)),
        ("documented_tools_stream", 10, "tool_calls", (1512, 89, 1200)),
    ],
)
def test_a_stream_passes_as_it_came(name: str, tokens: int, reason: str, usage: tuple[int, int, int]) -> None:
    stream = MessagesStream()
    found = seen(stream, body_of(name))
    assert shown(found) == body_of(name)
    assert found[0].kind is K.ROLE
    assert (found[-2].kind, found[-1].kind) == (K.FINISH, K.DONE)
    assert stream.terminal
    assert (stream.tokens_seen, stream.finish_reason) == (tokens, reason)
    assert [one.token for one in found].count(True) == tokens
    told = stream.usage
    assert told is not None
    assert (told.prompt_tokens, told.completion_tokens, told.cached_tokens) == usage


@pytest.mark.parametrize("name", STREAMS)
def test_cut_at_every_byte_it_is_the_same(name: str) -> None:
    body = body_of(name)
    whole = shown(seen(MessagesStream("alias"), body))
    assert all(shown(seen(MessagesStream("alias"), body[:cut], body[cut:])) == whole for cut in range(len(body)))


@pytest.mark.parametrize("name", STREAMS)
def test_n1_the_model_is_named_as_the_client_knows_it_and_nothing_else_changes(name: str) -> None:
    body = body_of(name)
    found = shown(seen(MessagesStream('a "b"/c'), body))
    served = json.loads(body.split(b"data: ", 1)[1].split(b"\n", 1)[0])["message"]["model"]
    assert found == body.replace(f'"model":"{served}"'.encode(), rb'"model":"a \"b\"/c"', 1)
    assert final_message(found).model == 'a "b"/c'


def test_a_model_named_in_the_text_is_text() -> None:
    start = event(
        "message_start", message={"id": "m", "content": [], "usage": {}, "model": "served", "x": '"model":"served"'}
    )
    assert shown(seen(MessagesStream("alias"), start)) == start.replace(b'"model":"served"', b'"model":"alias"', 1)


def test_a_start_without_a_model_stays() -> None:
    start = event("message_start", message={"id": "m"})
    odd = event("message_start", message="m")
    assert shown(seen(MessagesStream("alias"), start + odd)) == start + odd


def test_s2_without_message_stop_it_is_a_cut() -> None:
    body = body_of("llama_cpp_stream")
    stream = MessagesStream()
    seen(stream, body[: body.index(b"event: message_stop")])
    assert stream.finish_reason == "length"
    assert not stream.terminal


@pytest.mark.parametrize(
    "error",
    [
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n',
        b'event: error\ndata: {"error":{"code":500,"message":"busy","type":"server_error"}}\n\n',
        b'data: {"error":{"code":500,"message":"busy","type":"server_error"}}\n\n',
        b'event: error\ndata: {"code":500,"message":"busy"}\n\n',
        b'error: {"code":500,"message":"busy"}\n\n',
        b'{"error":{"message":"busy"}}\n\n',
    ],
)
def test_s4_error_in_first_event(error: bytes) -> None:
    (found,) = seen(MessagesStream(), error)
    assert (found.kind, found.forward) == (K.ERROR, b"")
    assert found.error is not None
    assert found.error["message"] == "busy"


def test_an_error_at_the_end_of_the_body_without_its_blank_line() -> None:
    stream = MessagesStream()
    assert stream.unfinished(b'{"error":{"message":"busy"}}') == {"message": "busy"}
    assert stream.unfinished(b'event: content_block_delta\ndata: {"ty') is None


@pytest.mark.parametrize("text", ["", '"', '""', '"error"', "message_stop", '\\"', "\n", "你好 👋", "x" * 100_000])
def test_odd_texts(text: str) -> None:
    stream = MessagesStream()
    for piece in (text_event("one"), text_event(text), text_event(text)):
        (found,) = seen(stream, piece)
        assert found.forward == piece
        assert found.token == (b'"text":""}' not in piece)


@pytest.mark.parametrize(
    "kind", ["thinking_delta", "input_json_delta", "signature_delta", "citations_delta", "new_delta"]
)
def test_kinds_of_deltas(kind: str) -> None:
    member = {"thinking_delta": "thinking", "input_json_delta": "partial_json"}.get(kind, "signature")
    piece = event("content_block_delta", index=1, delta={"type": kind, member: "x"})
    (found,) = seen(MessagesStream(), piece)
    assert (found.forward, found.token) == (piece, member != "signature")


def test_pings_comments_and_what_is_new_pass() -> None:
    for piece in (b'event: ping\ndata: {"type": "ping"}\n\n', b": x\n\n", event("new_thing", x=1), b"data: 5\n\n"):
        (found,) = seen(MessagesStream(), piece)
        assert (found.forward, found.token) == (piece, False)


@pytest.mark.parametrize("mark", [b"data: [DONE]\n\n", b"data: null\n\n", b"data: \n\n"])
def test_openais_mark_is_not_shown_and_ends_nothing(mark: bytes) -> None:
    stream = MessagesStream()
    assert shown(seen(stream, mark)) == b""
    assert not stream.terminal


@pytest.mark.parametrize(
    "piece",
    [
        b"data: {\n\n",
        b'event: content_block_delta\ndata: {"delta":{"type":"text_delta","text":"a"}\n\n',
        b'event: content_block_delta\ndata: {"type":"text_delta","text":"\xff"}\n\n',
        b"data: <html>\n\n",
    ],
)
def test_what_is_no_json_is_an_error(piece: bytes) -> None:
    (found,) = seen(MessagesStream(), piece)
    assert found.kind is K.ERROR


def test_crlf_and_data_over_several_lines() -> None:
    start = (
        b'event: message_start\r\ndata: {"type":"message_start",\r\n'
        b'data: "message":{"model":"served","usage":{}}}\r\n\r\n'
    )
    found = shown(seen(MessagesStream("alias"), start))
    assert json.loads(b"".join(line[6:] for line in found.split(b"\n") if line.startswith(b"data: "))) == {
        "type": "message_start",
        "message": {"model": "alias", "usage": {}},
    }


def test_figures_that_are_none_are_not_counted() -> None:
    stream = MessagesStream()
    seen(stream, event("message_start", message={"usage": {"input_tokens": 7, "output_tokens": -1}}))
    seen(stream, event("message_delta", delta={}, usage={"input_tokens": 0, "output_tokens": True}))
    told = stream.usage
    assert told is not None
    assert (told.prompt_tokens, told.completion_tokens, told.cached_tokens) == (7, None, None)


def test_recorded_pairs_pass_as_they_came() -> None:
    for path in sorted((FOLDER / "anthropic" / "pairs").glob("*.sse")):
        stream = MessagesStream()
        assert shown(seen(stream, path.read_bytes())) == path.read_bytes()
        assert stream.terminal

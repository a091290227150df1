from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.wire.chat_stream import ChatStream
from gateway.wire.sse import Framer, data_of
from gateway.wire.stream_view import EventKind, Seen
from tests.recordings import FOLDER, recording, streams

K = EventKind
PAIRS = FOLDER / "llama.cpp" / "pairs"


def seen(stream: ChatStream, body: bytes) -> list[Seen]:
    framer = Framer()
    return [stream.see(event) for event in [*framer.feed(body), *framer.end()]]


def kinds(found: list[Seen]) -> list[EventKind]:
    return [one.kind for one in found]


def sse(*payloads: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(payload, separators=(",", ":")).encode() + b"\n\n" for payload in payloads)


def delta(text: dict[str, Any], reason: str | None = None, index: int = 0) -> dict[str, Any]:
    choice = {"index": index, "delta": text, "finish_reason": reason}
    return {"id": "x", "model": "served", "choices": [choice]}


def chat_body(engine: str, name: str) -> bytes:
    return recording(engine, name).body


def test_llama_cpp_with_usage() -> None:
    stream = ChatStream("chat")
    found = seen(stream, chat_body("llama.cpp", "chat_stream_usage"))
    assert kinds(found) == [K.ROLE, *[K.TOKEN] * 8, K.FINISH, K.USAGE, K.DONE]
    assert b"".join(one.forward for one in found) == chat_body("llama.cpp", "chat_stream_usage")
    assert stream.terminal
    assert (stream.finish_reason, stream.tokens_seen) == ("length", 8)
    usage = stream.usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (36, 8, 35)
    assert usage.prompt_seconds == pytest.approx(1.370389)
    assert usage.decode_seconds == pytest.approx(18.39538)


def test_llama_cpp_tells_its_usage_without_being_asked() -> None:
    stream = ChatStream("chat", show_usage=False)
    found = seen(stream, chat_body("llama.cpp", "chat_stream_nousage"))
    assert kinds(found) == [K.ROLE, *[K.TOKEN] * 4, K.FINISH, K.DONE]
    assert stream.usage is not None
    assert (stream.usage.prompt_tokens, stream.usage.completion_tokens, stream.usage.cached_tokens) == (36, 4, 35)


def test_vllm_puts_the_last_token_on_the_finish_chunk() -> None:
    stream = ChatStream("chat")
    found = seen(stream, chat_body("vllm", "chat_stream_usage"))
    assert kinds(found) == [K.ROLE, *[K.TOKEN] * 7, K.FINISH, K.USAGE, K.DONE]
    assert found[8].token
    assert stream.tokens_seen == 8
    assert stream.usage is not None
    assert (stream.usage.prompt_tokens, stream.usage.completion_tokens, stream.usage.cached_tokens) == (20, 8, 0)
    assert stream.usage.prompt_seconds is None


def test_a_usage_chunk_that_was_not_asked_for_is_kept_back() -> None:
    for engine in ("llama.cpp", "vllm"):
        body = chat_body(engine, "chat_stream_usage")
        stream = ChatStream("chat", show_usage=False)
        forward = b"".join(one.forward for one in seen(stream, body))
        assert stream.usage is not None
        assert b'"choices":[]' in body
        assert b'"choices":[]' not in forward
        assert forward == b"".join(event for event in Framer().feed(body) if b'"choices":[]' not in event)


def test_running_totals_are_not_summed() -> None:
    stream = ChatStream("chat")
    found = seen(stream, chat_body("vllm", "chat_stream_continuous_usage"))
    assert kinds(found) == [K.ROLE, K.TOKEN, K.TOKEN, K.FINISH, K.USAGE, K.DONE]
    assert stream.usage is not None
    assert (stream.usage.prompt_tokens, stream.usage.completion_tokens) == (20, 3)
    per_token = ChatStream("chat")
    seen(per_token, chat_body("llama.cpp", "chat_stream_timings_per_token"))
    assert per_token.usage is not None
    assert per_token.usage.completion_tokens == 3


def test_two_choices_end_only_when_both_have() -> None:
    stream = ChatStream("chat", choices=2)
    events = Framer().feed(chat_body("llama.cpp", "chat_n2_stream"))
    ended = []
    for event in events:
        stream.see(event)
        ended.append(stream.terminal)
    assert ended.index(True) == len(events) - 3  # the second finish_reason, then its usage and [DONE]
    assert stream.usage is not None
    assert (stream.usage.prompt_tokens, stream.usage.completion_tokens) == (36, 6)
    vllm = ChatStream("chat", choices=2)
    seen(vllm, chat_body("vllm", "chat_n2_stream"))
    assert vllm.usage is not None
    assert vllm.usage.completion_tokens == 4


def test_usage_of_a_prompt_list_is_summed() -> None:
    body = (PAIRS / "completions_prompt_list.sse").read_bytes()
    stream = ChatStream("completions", choices=2, prompts=2)
    found = seen(stream, body)
    assert stream.terminal
    assert stream.usage is not None
    assert (stream.usage.prompt_tokens, stream.usage.completion_tokens) == (4, 8)
    assert found[0] == Seen(b"", K.OTHER)  # `data: null`, which no client can use
    assert b"null\n\n" not in b"".join(one.forward for one in found)


def test_reasoning_counts_as_the_first_token() -> None:
    for engine, name in (("llama.cpp", "reasoning_content_stream"), ("vllm", "chat_reasoning_parser_stream")):
        found = seen(ChatStream("chat"), chat_body(engine, name))
        assert kinds(found)[:3] == [K.ROLE, K.TOKEN, K.TOKEN]


def test_a_tool_call_counts_as_the_first_token() -> None:
    found = seen(ChatStream("chat"), chat_body("vllm", "chat_tools_named_stream"))
    assert kinds(found) == [K.ROLE, K.TOKEN, K.FINISH, K.USAGE, K.DONE]
    calls = ChatStream("chat")
    seen(calls, (PAIRS / "chat_tool_call.sse").read_bytes())
    assert (calls.finish_reason, calls.terminal) == ("tool_calls", True)
    assert calls.tokens_seen > 5


def test_comments_are_passed_on_and_are_nothing() -> None:
    body = chat_body("llama.cpp", "sse_ping_during_prefill")
    found = seen(ChatStream("chat"), body)
    assert kinds(found) == [K.COMMENT, K.COMMENT, K.COMMENT, K.ROLE, K.TOKEN, K.TOKEN, K.FINISH, K.USAGE, K.DONE]
    assert b"".join(one.forward for one in found) == body


def test_an_error_in_the_middle_is_no_end() -> None:
    stream = ChatStream("chat")
    found = seen(stream, chat_body("llama.cpp", "kv_unified_full_0"))
    assert kinds(found) == [K.ROLE, K.TOKEN, K.TOKEN, K.ERROR]
    assert found[-1].forward == b""
    assert found[-1].error == {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}
    assert not stream.terminal


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'data: {"error":{"message":"m","type":"BadRequestError","code":400}}\n\n', "m"),
        (b'data: {"error":"m"}\n\n', "m"),
        (b'data: {"object":"error","message":"m","code":400}\n\n', "m"),
        (b'data: {"choices":[],"error":{"message":"m"}}\n\n', "m"),
        (b'error: {"code":400,"message":"m","type":"invalid_request_error"}\n\n', "m"),
        (b"error: m\n\n", "m"),
        (b'event: error\ndata: {"message":"m"}\n\n', "m"),
        (b'{"error":{"message":"m"}}\n\n', "m"),
        (b'{"error":{"message":"m"}}', "m"),
        (b'{"detail":"m"}', "m"),
        (b'data: {"error":{"message":"m"}}', "m"),
    ],
)
@pytest.mark.parametrize("warm", [False, True])
def test_every_form_of_an_error(body: bytes, message: str, warm: bool) -> None:
    stream = ChatStream("chat")
    if warm:
        for event in Framer().feed(sse(*[delta({"content": "x"})] * 3)):
            stream.see(event)
    found = stream.see(body)
    assert found.kind is K.ERROR
    assert found.forward == b""
    assert found.error is not None
    assert found.error["message"] == message
    assert not stream.terminal


def test_text_that_looks_like_markers_is_text() -> None:
    words = [
        '"error"',
        '"finish_reason":"stop"',
        "error",
        "finish_reason",
        '{"usage":{}}',
        "[DONE]",
        '\\"timings\\"',
        "role",
    ]
    body = sse(delta({"role": "assistant", "content": ""}), *[delta({"content": word}) for word in words])
    stream = ChatStream("chat", model_alias="code")
    found = seen(stream, body)
    assert kinds(found) == [K.ROLE, *[K.TOKEN] * len(words)]
    assert [json.loads(data_of(one.forward) or b"")["choices"][0]["delta"]["content"] for one in found[1:]] == words
    assert not stream.terminal


def test_an_end_with_other_spacing_is_seen() -> None:
    first, *rest = (delta({"content": "a"}), delta({"content": "b"}), delta({}, "stop"))
    body = sse(first) + b"".join(b"data: " + json.dumps(payload).encode() + b"\r\n\r\n" for payload in rest)
    stream = ChatStream("chat")
    assert kinds(seen(stream, body)) == [K.TOKEN, K.TOKEN, K.FINISH]
    assert stream.terminal


def test_only_what_is_said_is_an_end() -> None:
    stream = ChatStream("chat")
    seen(stream, sse(delta({"content": "a"}), delta({"content": "b"})))
    assert not stream.terminal
    done = ChatStream("chat")
    assert kinds(seen(done, b"data: [DONE]\n\n")) == [K.DONE]
    assert done.terminal


def test_unknown_fields_and_shapes_pass_untouched() -> None:
    body = sse(
        delta({"x_foo": 1}),
        delta({"reasoning": "r"}),
        delta({"tool_calls": [{"index": 1, "function": {"arguments": None}}]}),
        {"choices": [{"index": 0}]},
        {"anything": [1, 2]},
        [1, 2],
        "text",
    )
    body += b'data: {"choices":[{"index":0,"logprobs":NaN,"usage":%b}]}\n\nid: 4\n\n' % (b"9" * 400)
    found = seen(ChatStream("chat"), body)
    assert b"".join(one.forward for one in found) == body
    assert K.ERROR not in kinds(found)


@pytest.mark.parametrize(
    "broken",
    [
        b"data: {bad json\n\n",
        b"data: not json\n\n",
        b"event: error\ndata: not json\n\n",
        b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":"\xff\xfe"},"finish_reason":null}]}\n\n',
        b'data: {"z":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n\n",
    ],
)
@pytest.mark.parametrize("before", [0, 1, 3])
def test_what_no_client_can_read_is_an_error(broken: bytes, before: int) -> None:
    stream = ChatStream("chat")
    assert K.ERROR not in kinds(seen(stream, sse(delta({"content": "a"})) * before))
    found = stream.see(broken)
    assert (found.kind, found.forward) == (K.ERROR, b"")
    assert found.error is not None
    assert found.error["code"] == 502


def test_an_event_without_data_in_it_is_kept_back() -> None:
    for event in (b"data:\n\n", b"data: \n\n", b"data: null\n\n"):
        assert ChatStream("chat").see(event) == Seen(b"", K.OTHER)


def test_a_cut_event_is_no_error_but_an_unfinished_error_is() -> None:
    stream = ChatStream("chat")
    assert stream.unfinished(b'data: {"choices":[{"delta":{"conte') is None
    assert stream.unfinished(b"data: x") is None
    assert stream.unfinished(b"") is None
    assert stream.unfinished(b'data: {"error":{"message":"m"}}') == {"message": "m"}
    assert stream.unfinished(b'{"error":{"message":"m"}}\n') == {"message": "m"}


@pytest.mark.parametrize(("name", "body"), streams(), ids=[name for name, _ in streams()])
def test_every_recorded_stream_passes_byte_for_byte(name: str, body: bytes) -> None:
    surface = "completions" if "completions" in name else "chat"
    stream = ChatStream(surface, choices=2 if "n2" in name or "list" in name else 1)
    found = seen(stream, body)
    forward = b"".join(one.forward for one in found)
    if K.ERROR in kinds(found):
        assert not stream.terminal
    else:
        assert forward == body.replace(b"data: null\n\n", b"")
        assert stream.terminal
        assert stream.tokens_seen > 0


@pytest.mark.parametrize(("name", "body"), streams(), ids=[name for name, _ in streams()])
@pytest.mark.parametrize("alias", ["code", 'odd "name" / é'])
def test_the_alias_is_in_every_chunk_and_nothing_else_differs(name: str, body: bytes, alias: str) -> None:
    plain, renamed = ChatStream("chat"), ChatStream("chat", model_alias=alias)
    for event in Framer().feed(body):
        before, after = plain.see(event), renamed.see(event)
        assert (before.kind, before.error, before.token) == (after.kind, after.error, after.token)
        data = data_of(before.forward)
        if data is None or not data.startswith(b"{"):
            assert before.forward == after.forward
            continue
        old, new = json.loads(data), json.loads(data_of(after.forward) or b"")
        assert list(old) == list(new)
        assert new.pop("model") == alias
        served = old.pop("model")
        assert old == new
        assert after.forward.replace(
            json.dumps(alias, ensure_ascii=False).encode(), b'"' + served.encode() + b'"', 1
        ) == (before.forward)


def test_an_alias_like_the_engines_name_changes_nothing() -> None:
    body = chat_body("vllm", "chat_stream_usage")
    assert b"".join(one.forward for one in seen(ChatStream("chat", model_alias="tiny"), body)) == body


def test_chunks_without_a_model_stay_as_they_are() -> None:
    body = sse({"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}]}) * 5
    assert b"".join(one.forward for one in seen(ChatStream("chat", model_alias="code"), body)) == body


def test_changing_ends_are_followed() -> None:
    payloads = [{"created": 100 + i // 3, **delta({"content": f"t{i}"})} for i in range(30)]
    body = sse(*payloads, delta({}, "stop"))
    stream = ChatStream("chat", model_alias="code")
    found = seen(stream, body)
    assert kinds(found) == [*[K.TOKEN] * 30, K.FINISH]
    assert b"".join(one.forward for one in found) == body.replace(b'"served"', b'"code"')

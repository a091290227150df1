from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.wire.ollama.stream import OllamaStream
from gateway.wire.stream_view import EventKind, Seen
from gateway.wire.usage import Usage
from tests.wire.ollama.samples import FILES, WHOLE_STREAMS, cuts, framed

K = EventKind


def shown(stream: OllamaStream, parts: list[bytes]) -> list[Seen]:
    return [stream.see(line) for line in framed(parts)]


@pytest.mark.parametrize("name", FILES)
def test_what_passes_through_is_the_same_bytes(name: str) -> None:
    found = shown(OllamaStream(), [FILES[name]])
    passed = b"".join(one.forward for one in found)
    assert passed == FILES[name][: FILES[name].index(b'{"error"')] if name == "chat_error" else FILES[name]


@pytest.mark.parametrize("name", WHOLE_STREAMS)
def test_a_stream_cut_at_any_byte_shows_the_same(name: str) -> None:
    body = FILES[name]
    expected = shown(OllamaStream("lake"), [body])
    assert expected[-1].kind is K.DONE
    assert all(shown(OllamaStream("lake"), parts) == expected for parts in cuts(body))
    for line, seen in zip(framed([body]), expected, strict=True):
        assert json.loads(seen.forward) == {**json.loads(line), "model": "lake"}


@pytest.mark.parametrize(
    ("name", "tokens", "reason", "usage"),
    [
        ("chat_text", 12, "stop", Usage(29, 13, 8, 10.175903, 0.173639)),
        ("chat_thinking", 9, "length", Usage(17, 9, 8, 10.175903, 0.173639)),
        ("chat_tools", 3, "tool_calls", Usage(177, 41, 8, 10.175903, 0.173639)),
        ("generate_text", 6, "stop", Usage(11, 7, None, 10.175903, 0.173639)),
        ("chat_first_servers", 1, "stop", Usage(61, 468, None, 0.398801, 7.701267)),
    ],
)
def test_how_a_stream_ends(name: str, tokens: int, reason: str, usage: Usage) -> None:
    stream = OllamaStream()
    lines = framed([FILES[name]])
    for line in lines[:-1]:
        assert stream.see(line).kind is K.TOKEN
        assert not stream.terminal
        assert stream.usage is None
        assert stream.finish_reason is None
    assert stream.see(lines[-1]).kind is K.DONE
    assert stream.terminal
    assert (stream.tokens_seen, stream.finish_reason, stream.usage) == (tokens, reason, usage)
    assert stream.closing() == b""


def test_the_name_in_a_tools_arguments_is_not_the_models() -> None:
    call = b'{"role":"assistant","tool_calls":[{"function":{"model":"served"}}]}'
    body = b'{"message":' + call + b',"model":"served","done":false}\n'
    first = b'{"model":"served","message":{"role":"assistant","content":"a"},"done":false}\n'
    stream = OllamaStream("lake")
    assert stream.see(first).forward == first.replace(b"served", b"lake", 1)
    assert stream.see(body).forward == body.replace(b'"model":"served","done"', b'"model":"lake","done"')
    assert stream.see(b'{"response":"b","done":false}\n').forward == b'{"response":"b","done":false}\n'


def test_a_last_line_may_carry_the_last_token() -> None:
    stream = OllamaStream()
    seen = stream.see(b'{"response":"b","done":true,"done_reason":"stop"}')
    assert seen == Seen(b'{"response":"b","done":true,"done_reason":"stop"}\n', K.DONE, None, True)
    assert (stream.tokens_seen, stream.usage) == (1, None)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"error":"out of luck"}\n', {"message": "out of luck"}),
        (b'{"error":"busy","status":503}\n', {"message": "busy", "code": 503}),
        (b'{"error":{"message":"odd","code":"x"},"done":true}\n', {"message": "odd", "code": "x"}),
        (b"oh no\n", {"message": "the engine sent an event that is not JSON", "type": "upstream_error", "code": 502}),
        (b'{"response":"\xff","done":false}\n', {"code": 502}),
        (b"[" * 100_000 + b"\n", {"code": 502}),
    ],
)
def test_s4_an_error_is_no_answer(line: bytes, error: dict[str, Any]) -> None:
    stream = OllamaStream("lake")
    seen = stream.see(line)
    assert (seen.forward, seen.kind) == (b"", K.ERROR)
    assert seen.error is not None
    assert {key: seen.error.get(key) for key in error} == error
    assert not stream.terminal


def test_an_error_without_a_line_end_is_told_and_a_cut_is_not() -> None:
    stream = OllamaStream()
    assert stream.unfinished(b'{"error":"gone"}') == {"message": "gone"}
    assert stream.unfinished(b'{"model":"served","resp') is None
    assert stream.unfinished(b"") is None


def test_odd_lines_pass_or_are_kept_back() -> None:
    stream = OllamaStream("lake")
    assert stream.see(b"\r\n") == Seen(b"", K.OTHER)
    assert stream.see(b"[1]\n") == Seen(b"[1]\n", K.OTHER)
    not_a_number = b'{"model":"served","response":"a","score":NaN,"done":false}\n'
    named = not_a_number.replace(b"served", b"lake")
    assert stream.see(not_a_number) == Seen(named, K.TOKEN, None, True)  # clients in Python read it
    assert stream.see(b'{"message":{"role":"assistant","content":""},"done":false}\n').kind is K.ROLE
    strange = b'{"model":"served","message":7,"done":false}\n'
    assert stream.see(strange) == Seen(strange.replace(b"served", b"lake"), K.OTHER)

from __future__ import annotations

import pytest

from gateway.relay import Call
from gateway.relay.headers import asked_to_wait, content_length, end_to_end, stream_headers


def test_framing_is_ours_and_hop_by_hop_fields_stay_behind() -> None:
    given = [
        ("Content-Type", "application/json"),
        ("Content-Length", "999"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "keep-alive, x-secret"),
        ("Host", "elsewhere"),
        ("Accept-Encoding", "gzip"),
        ("Expect", "100-continue"),
        ("Cookie", "a=b"),
        ("X-Request-Id", "r1"),
    ]
    head = Call("POST", "/v1/chat/completions?a=1", "gpu:8000", given, b"12345").head()
    assert head == (
        b"POST /v1/chat/completions?a=1 HTTP/1.1\r\nHost: gpu:8000\r\nAccept-Encoding: identity\r\n"
        b"Content-Type: application/json\r\nX-Request-Id: r1\r\nContent-Length: 5\r\n\r\n"
    )
    assert b"Content-Length" not in Call("GET", "/v1/models", "gpu").head()


@pytest.mark.parametrize(
    "call",
    [
        Call("POST", "/a b", "h"),
        Call("POST", "/a\r\nX: y", "h"),
        Call("PO ST", "/", "h"),
        Call("POST", "/", "h\r\n"),
        Call("POST", "/", "h", [("X", "a\r\nContent-Length: 0")]),
        Call("POST", "/", "h", [("X\n", "a")]),
        Call("POST", "/", "h", [("X Y", "a")]),
        Call("POST", "/", "h", [("X", "\x00")]),
        Call("POST", "/", "h", [("X", "日")]),
    ],
)
def test_nothing_that_changes_the_framing_is_written(call: Call) -> None:
    with pytest.raises(ValueError, match="not a"):
        call.head()


def test_a_body_in_pieces_has_the_length_of_all() -> None:
    call = Call("POST", "/", "h", body=(b"12", memoryview(b"345"), b""))
    assert b"Content-Length: 5\r\n" in call.head()
    assert b"".join(call.pieces) == b"12345"
    assert Call("POST", "/", "h", body=b"1").pieces == (b"1",)


def test_bodies_and_headers_stay_out_of_the_repr() -> None:
    text = repr(Call("POST", "/", "h", [("Authorization", "Bearer k")], b"prompt"))
    assert "prompt" not in text
    assert "Bearer" not in text


def test_what_of_an_answer_s_head_crosses() -> None:
    headers = [
        ("connection", "close, x-hop"),
        ("x-hop", "1"),
        ("server", "llama.cpp"),
        ("access-control-allow-origin", ""),
        ("content-type", "text/event-stream"),
        ("transfer-encoding", "chunked"),
        ("keep-alive", "timeout=5, max=100"),
        ("cache-control", "no-store"),
        ("x-request-id", "abc"),
        ("x-kvgate-backend", "evil"),
        ("x-kvgate-decision", "evil"),
        ("server-timing", "evil"),
        ("x-should-retry", "true"),
        ("retry-after", "9"),
        ("location", "http://elsewhere"),
        ("set-cookie", "a=b"),
        ("x-engine-key", "sk-1"),
        ("endpoint-load-metrics", "JSON {}"),
        ("x-ratelimit-remaining-tokens", "5"),
        ("openai-processing-ms", "12"),
    ]
    kept = [
        ("content-type", "text/event-stream"),
        ("x-request-id", "abc"),
        ("x-ratelimit-remaining-tokens", "5"),
        ("openai-processing-ms", "12"),
    ]
    assert end_to_end(headers) == kept
    assert stream_headers(headers, "text/event-stream") == [
        ("content-type", "text/event-stream"),
        ("x-request-id", "abc"),
        ("x-ratelimit-remaining-tokens", "5"),
        ("openai-processing-ms", "12"),
        ("cache-control", "no-cache"),
        ("x-accel-buffering", "no"),
    ]
    assert content_length([("content-length", "12")]) == 12
    assert content_length(headers) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        ("2.5", 2.5),
        ("Tue, 01 Dec 2026 00:00:30 GMT", 30.0),
        ("Mon, 30 Nov 2026 23:59:30 GMT", 0.0),
        ("soon", None),
        ("-3", None),
        ("1e400", 86_400.0),
        ("nan", None),
    ],
)
def test_how_long_an_engine_asks_to_wait(value: str | None, seconds: float | None) -> None:
    assert asked_to_wait(value, 1796083200.0) == seconds

"""What clients are told when an answer fails after it has begun."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx2
import pytest
from openai import APIError, OpenAI
from openai.types.responses import ResponseErrorEvent, ResponseFailedEvent

from gateway.errors import (
    BadStatus,
    ContextTooLong,
    GatewayError,
    MalformedRequest,
    OverQuota,
    Saturated,
    StreamBroken,
    TimedOut,
    Unavailable,
)
from gateway.wire.responses.errors import error_event
from gateway.wire.responses.stream import ResponsesStream
from gateway.wire.stream_view import EventKind
from tests.wire.responses.checked import payloads, stream_of
from tests.wire.responses.native import OPENAI_TOOLS

WAIT = re.compile(r"(?i)try again in\s*(\d+(?:\.\d+)?)\s*(s|ms|seconds?)")
"""How Codex reads from a message for how long to wait (codex-rs, codex-api/src/sse/responses.rs)."""


def failed(err: GatewayError) -> dict[str, Any]:
    told: dict[str, Any] = payloads(error_event(err))[1]["response"]["error"]
    return told


def test_both_events_are_of_the_sdks_types() -> None:
    error, failure = payloads(error_event(StreamBroken("the engine went away", decision_id="d1")))
    assert ResponseErrorEvent.model_validate(error).message == "the engine went away"
    assert ResponseFailedEvent.model_validate(failure).response.status == "failed"
    assert error["error"] == {
        "message": "the engine went away",
        "type": "upstream_error",
        "param": None,
        "code": "upstream_stream_broken",
    }


def test_s3_the_sdk_raises_in_the_middle_of_an_answer() -> None:
    body = stream_of(*OPENAI_TOOLS[:10]) + error_event(StreamBroken("the engine went away"))
    answered = httpx2.MockTransport(
        lambda _: httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    )
    seen = []
    with (
        OpenAI(api_key="k", base_url="http://test", http_client=httpx2.Client(transport=answered)) as client,
        pytest.raises(APIError, match="the engine went away"),
    ):
        seen += list(client.responses.create(model="m", input="x", stream=True))
    assert b"response.completed" not in body


@pytest.mark.parametrize(
    ("err", "code"),
    [
        (ContextTooLong("maximum context length is 8 tokens"), "context_length_exceeded"),
        (BadStatus("too long", status=400, code="context_length_exceeded"), "context_length_exceeded"),
        (MalformedRequest("no"), "invalid_prompt"),
        (BadStatus("no", status=422), "invalid_prompt"),
        (StreamBroken("gone"), "server_error"),
        (TimedOut("slow"), "server_error"),
        (BadStatus("broken", status=500), "server_error"),
        (Unavailable("none works"), "server_error"),
        (Saturated("full"), "rate_limit_exceeded"),
        (Unavailable("none works", retry_after=7), "rate_limit_exceeded"),
    ],
)
def test_c2_codex_knows_the_code(err: GatewayError, code: str) -> None:
    assert failed(err)["code"] == code


@pytest.mark.parametrize("message", ["All busy.", "All busy. Please try again in 7 s."])
def test_e3_codex_is_told_how_long_to_wait(message: str) -> None:
    found = WAIT.findall(failed(OverQuota(message, retry_after=6.2))["message"])
    assert found == [("7", "s")]


def test_another_gateway_reads_it_as_an_error() -> None:
    for told in error_event(ContextTooLong("too long")).split(b"\n\n")[:-1]:
        seen = ResponsesStream().see(told + b"\n\n")
        assert seen.kind is EventKind.ERROR
        assert seen.error is not None
        assert (seen.error["code"], seen.error["message"]) == ("context_length_exceeded", "too long")


def test_nothing_of_it_breaks_a_line() -> None:
    body = error_event(StreamBroken('line\none "two"', param="a\r\nb"))
    assert [json.loads(line[6:])["type"] for line in body.split(b"\n") if line.startswith(b"data: ")] == [
        "error",
        "response.failed",
    ]

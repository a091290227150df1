from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic.types import MessageTokensCount, ModelInfo
from anthropic.types.shared import ErrorResponse

from gateway.core.reasons import Reason
from gateway.engines.overflow import overflow_message
from gateway.errors import (
    BadStatus,
    BodyTooLarge,
    ConnectFailed,
    ContextTooLong,
    Forbidden,
    GatewayError,
    MalformedRequest,
    OverQuota,
    Saturated,
    StreamBroken,
    TimedOut,
    Unauthorized,
    Unavailable,
    UnknownModel,
)
from gateway.wire.anthropic.errors import error_body, error_event
from gateway.wire.anthropic.models import count_body, model_one, models
from gateway.wire.models import ModelEntry
from gateway.wire.sse import data_of, fields


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MalformedRequest("m", param="x"), "invalid_request_error"),
        (Unauthorized("m"), "authentication_error"),
        (Forbidden("m"), "permission_error"),
        (UnknownModel("m"), "not_found_error"),
        (BodyTooLarge("m"), "request_too_large"),
        (OverQuota("m"), "rate_limit_error"),
        (Saturated("m"), "rate_limit_error"),
        (Unavailable("m"), "overloaded_error"),
        (TimedOut("m"), "timeout_error"),
        (ConnectFailed("m"), "api_error"),
        (StreamBroken("m"), "api_error"),
        (BadStatus("m", status=422), "invalid_request_error"),
        (BadStatus("m", status=529), "overloaded_error"),
        (GatewayError("m"), "api_error"),
    ],
)
def test_types_by_status(error: GatewayError, kind: str) -> None:
    told = json.loads(error_body(error))
    assert (told["type"], told["error"]["type"], told["error"]["message"]) == ("error", kind, "m")
    if kind != "request_too_large":  # documented, but none of the client's types
        assert ErrorResponse.model_validate(told).error.type == kind


def test_what_we_know_more_is_told_too() -> None:
    error = Saturated("m", reason=Reason.QUEUE_FULL, decision_id="req_1")
    told = json.loads(error_body(error))
    assert told["request_id"] == "req_1"
    assert (told["error"]["code"], told["error"]["reason"]) == ("saturated", str(Reason.QUEUE_FULL))


@pytest.mark.parametrize(
    ("message", "figures"),
    [
        (overflow_message(4096, 6031), (6031, 4096)),
        (
            "This model's maximum context length is 8192 tokens. However, your messages are about 9000 tokens.",
            (9000, 8192),
        ),
        (
            "The maximum context length is 2048 tokens. However, your prompt contains at least 2049 input tokens.",
            (2049, 2048),
        ),
        (
            "This key's maximum context length is 10 tokens. However, your messages are about 11 tokens (estimated).",
            (11, 10),
        ),
    ],
)
def test_c2_overflow_in_the_words_that_agents_of_this_dialect_know(message: str, figures: tuple[int, int]) -> None:
    told = json.loads(error_body(ContextTooLong(message)))["error"]
    assert told["message"].startswith(f"prompt is too long: {figures[0]} tokens > {figures[1]} maximum")
    assert message in told["message"]
    assert (told["type"], told["code"]) == ("invalid_request_error", "context_length_exceeded")


def test_overflow_without_figures() -> None:
    told = json.loads(error_body(ContextTooLong(overflow_message(None, None))))["error"]
    assert told["message"].startswith("prompt is too long")
    own = "prompt is too long: 210000 tokens > 200000 maximum"
    assert json.loads(error_body(ContextTooLong(own)))["error"]["message"] == own


def test_the_official_client_raises_at_the_event() -> None:
    event = error_event(StreamBroken("the engine went away"))
    assert fields(event, b"event") == [b"error"]
    told: Any = json.loads(data_of(event) or b"")
    assert told["type"] == "error"
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=event)
    )
    with (
        anthropic.Anthropic(
            api_key="k", base_url="http://test", http_client=httpx2.Client(transport=transport)
        ) as client,
        pytest.raises(anthropic.APIStatusError, match="the engine went away"),
        client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]) as stream,
    ):
        stream.get_final_message()


def test_models() -> None:
    entries = [ModelEntry("org/name", created=1_764_000_000, window=32_768, max_output=4096), ModelEntry("small")]
    told = json.loads(models(entries))
    assert (told["has_more"], told["first_id"], told["last_id"]) == (False, "org/name", "small")
    first, second = (ModelInfo.model_validate(entry) for entry in told["data"])
    assert (first.id, first.max_input_tokens, first.max_tokens) == ("org/name", 32_768, 4096)
    assert first.created_at.isoformat() == "2025-11-24T16:00:00+00:00"
    assert (second.max_input_tokens, second.created_at.year) == (None, 1970)
    assert json.loads(model_one(entries[0])) == told["data"][0]


def test_no_models() -> None:
    assert json.loads(models([])) == {"data": [], "has_more": False, "first_id": None, "last_id": None}


@pytest.mark.parametrize("created", [-1, 2**63])
def test_dates_that_are_none(created: int) -> None:
    assert ModelInfo.model_validate(json.loads(model_one(ModelEntry("m", created=created)))).id == "m"


def test_t2_count() -> None:
    assert MessageTokensCount.model_validate(json.loads(count_body(36))).input_tokens == 36

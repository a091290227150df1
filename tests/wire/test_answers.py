from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.core.reasons import Reason
from gateway.errors import ContextTooLong, Saturated
from gateway.wire.answer import read_answer
from gateway.wire.error_body import error_event, error_in, openai_error, upstream_error
from gateway.wire.models import ModelEntry, model_list, model_one
from gateway.wire.sse import Framer, data_of
from gateway.wire.usage import Usage, UsageTally, credible, usage_of
from tests.recordings import recording


def test_a_whole_answer_of_llama_cpp() -> None:
    body = recording("llama.cpp", "chat_nonstream").body
    answer = read_answer(body, "code")
    assert answer is not None
    shown, usage, reason = answer
    assert shown == body.replace(b'"model":"smollm2"', b'"model":"code"')
    assert usage == Usage(36, 12, 0, pytest.approx(11.058975), pytest.approx(24.940518))
    assert reason == "stop"


def test_a_whole_answer_of_vllm() -> None:
    body = recording("vllm", "chat_nonstream").body
    answer = read_answer(body, "code")
    assert answer is not None
    shown, usage, reason = answer
    assert shown == body.replace(b'"model":"tiny"', b'"model":"code"')
    assert usage == Usage(20, 8, 0)
    assert reason == "length"


@pytest.mark.parametrize("alias", [None, "tiny"])
def test_a_name_that_need_not_change_leaves_every_byte(alias: str | None) -> None:
    body = recording("vllm", "completions_nonstream").body
    answer = read_answer(body, alias)
    assert answer is not None
    assert answer.body is body


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"choices":[]}',
        b'{"choices":null,"usage":null}',
        b'{"choices":[1]}',
        b'{"usage":3}',
        b'{"error":{"message":"m"}}',
        b'{"error":"m","choices":[{}]}',
        b'data: {"choices":[{}]}\n\n',
        b'{"choices":[{"index":0',
    ],
)
def test_what_is_no_answer(body: bytes) -> None:
    assert read_answer(body, "code") is None


def test_an_answer_that_only_lenient_parsers_read_is_one() -> None:
    body = b'{"model":"m","choices":[{"logprobs":[NaN],"finish_reason":"stop"}],"usage":{"prompt_tokens":1%b}}' % (
        b"0" * 99
    )
    named = body.replace(b'"model":"m"', b'"model":"code"')
    assert read_answer(body, "code") == (named, None, "stop")


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({}, None),
        ({"usage": None, "timings": None}, None),
        ({"usage": {"prompt_tokens": 5, "completion_tokens": 2}}, Usage(5, 2)),
        ({"usage": {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": None}}, Usage(5, 2)),
        ({"usage": {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}}}, Usage(5, None, 4)),
        ({"usage": {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": None}}}, Usage(5, None)),
        ({"timings": {"cache_n": 35, "prompt_n": 1, "predicted_n": 4}}, Usage(36, 4, 35)),
        (
            {"timings": {"prompt_n": 7, "predicted_n": 4, "prompt_ms": 500, "predicted_ms": 2000.0}},
            Usage(7, 4, None, 0.5, 2.0),
        ),
        ({"usage": {"prompt_tokens": "5", "completion_tokens": True}}, None),
        ({"usage": {"prompt_tokens": -1}}, None),
        ({"usage": {"prompt_tokens": 2e18, "completion_tokens": 2**24 + 1}}, None),
        ({"usage": {"prompt_tokens": 10**18, "completion_tokens": 3}}, Usage(None, 3)),
        ({"usage": {"prompt_tokens": 10.5, "completion_tokens": 2.5}}, None),
        (
            {"usage": {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 11}}},
            Usage(10, 3),
        ),
        (
            {"usage": {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": -7}}},
            Usage(10, 3),
        ),
        ({"usage": {"completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}}}, Usage(None, 3)),
        (
            {"timings": {"prompt_n": 7, "predicted_n": 4, "prompt_ms": float("inf"), "predicted_ms": 1e18}},
            Usage(7, 4),
        ),
    ],
)
def test_usage(payload: dict[str, Any], expected: Usage | None) -> None:
    assert usage_of(payload) == expected


def test_figures_that_a_request_can_not_have_had() -> None:
    usage = Usage(90_000, 500, 10)
    assert credible(usage, prompt_bytes=40_000, budget=250) == usage
    assert credible(usage, prompt_bytes=1_000, budget=None) == Usage(None, 500)
    assert credible(usage, prompt_bytes=None, budget=10) == Usage(90_000, None, 10)
    assert credible(Usage(None, None), prompt_bytes=0, budget=0) == Usage(None, None)


def test_a_tally_without_figures_is_none() -> None:
    tally = UsageTally()
    tally.add({"choices": []}, 0)
    assert tally.total is None


def test_our_errors() -> None:
    error = Saturated("full", reason=Reason.QUEUE_FULL, decision_id="d1", retry_after=3)
    body = json.loads(openai_error(error))
    assert body == {
        "error": {
            "message": "full",
            "type": "rate_limit_error",
            "param": None,
            "code": "saturated",
            "reason": "queue_full",
            "decision_id": "d1",
        }
    }
    events = Framer().feed(error_event(error))
    assert [json.loads(data_of(event) or b"") for event in events] == [body]


def test_an_overflow_error_says_so_by_code() -> None:
    error = json.loads(openai_error(ContextTooLong("too long", param="messages")))["error"]
    assert (error["type"], error["code"], error["param"]) == (
        "invalid_request_error",
        "context_length_exceeded",
        "messages",
    )


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"error": {"message": "m", "code": 4}}, "m"),
        ({"error": {"message": None}}, ""),
        ({"error": {"message": ["m"]}}, '["m"]'),
        ({"error": "m"}, "m"),
        ({"object": "error", "message": "m"}, "m"),
        ({"type": "error", "error": {"message": "m"}}, "m"),
        ({"detail": "m"}, "m"),
        ({"detail": [{"loc": 1}]}, '[{"loc":1}]'),
    ],
)
def test_errors_of_engines(payload: Any, message: str) -> None:
    found = error_in(payload)
    assert found is not None
    assert found["message"] == message


@pytest.mark.parametrize(
    "payload", [None, [], "error", {}, {"error": None}, {"error": ""}, {"choices": [], "detail": 1}]
)
def test_what_is_no_error(payload: Any) -> None:
    assert error_in(payload) is None


def test_upstream_bodies() -> None:
    assert upstream_error(404, b'{"detail":"Not Found"}') == {"message": "Not Found", "code": 404}
    assert upstream_error(500, b'{"error":{"message":"m","code":503}}') == {"message": "m", "code": 503}
    for body in (b"", b"upstream connect error", b"<html>", b'"x"', b'{"choices":[]}', b"[" * 5000):
        assert upstream_error(503, body) is None


def test_models() -> None:
    big = ModelEntry("org/code", created=7, window=131072, max_output=4096)
    one = json.loads(model_one(big))
    assert one == {
        "id": "org/code",
        "object": "model",
        "created": 7,
        "owned_by": "kvgate",
        "max_model_len": 131072,
        "context_window": 131072,
        "context_length": 131072,
        "max_output_tokens": 4096,
    }
    listed = json.loads(model_list([big, ModelEntry("b")]))
    assert listed["object"] == "list"
    assert listed["data"][0] == one
    assert "max_model_len" not in listed["data"][1]

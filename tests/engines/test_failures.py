from __future__ import annotations

import json
import re
from typing import Any

import pytest

from gateway.engines.adapter import FailureKind
from gateway.engines.failures import classify
from gateway.engines.registry import ENGINES

K = FailureKind


def error(message: str, **more: Any) -> bytes:
    return json.dumps({"error": {"message": message, **more}}).encode()


OVERFLOWS = [
    # llama.cpp
    ("request (6031 tokens) exceeds the available context size (4096 tokens), try increasing it", 4096, 6031),
    ("the request exceeds the available context size", None, None),
    (
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        None,
        None,
    ),
    # vLLM
    (
        "This model's maximum context length is 2048 tokens. However, your prompt contains at least 2049 input tokens, "
        "which exceeds this limit even without any output tokens. (parameter=input_tokens, value=2049)",
        2048,
        2049,
    ),
    (
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4500 in the messages, "
        "500 in the completion). Please reduce the length of the messages or completion.",
        4096,
        5000,
    ),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 8192 "
        "tokens and your request has 6000 input tokens (32000 > 8192 - 6000).",
        8192,
        38000,
    ),
    (
        "This model's maximum context length is 8192 tokens. However, you requested 400 output tokens and your prompt "
        "contains at least 7793 input tokens, for a total of at least 8193 tokens. Please reduce the length.",
        8192,
        8193,
    ),
    ("max_tokens=100000 cannot be greater than max_model_len=2048. Please request fewer output tokens.", 2048, 100000),
    ("The decoder prompt (length 9000) is longer than the maximum model length of 8192. Make sure that", 8192, 9000),
    (
        "You passed 9001 input tokens and requested 0 output tokens. However, the model's context length is only 8192 "
        "tokens, resulting in a maximum input length of 8192 tokens.",
        8192,
        9001,
    ),
    ("max_tokens must be at least 1, got -186.", None, None),
    # SGLang
    (
        "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of "
        "9000 tokens: 8500 tokens from the input messages and 500 tokens for the completion.",
        8192,
        9000,
    ),
    ("The input (9000 tokens) is longer than the model's context length (8192 tokens).", 8192, 9000),
    # others
    ("This model's maximum context length is 128000 tokens.", 128000, None),
    ("input length exceeds the context length", None, None),
]


@pytest.mark.parametrize("name", sorted(ENGINES))
@pytest.mark.parametrize(("wording", "limit", "requested"), OVERFLOWS)
@pytest.mark.parametrize("status", [200, 400, 413, 500])
def test_every_wording_of_an_overflow(
    name: str, wording: str, limit: int | None, requested: int | None, status: int
) -> None:
    failure = ENGINES[name].failure(status, error(wording))
    assert (failure.kind, failure.limit, failure.requested) == (K.CONTEXT, limit, requested)
    assert not failure.retryable
    assert not failure.blame
    if limit is not None:
        assert f"maximum context length is {limit} tokens" in failure.message
    assert "maximum context length" in failure.message


def test_an_overflow_by_code_alone() -> None:
    assert classify(400, error("no", code="context_length_exceeded")).kind is K.CONTEXT
    assert classify(400, error("no", type="exceed_context_size_error")).kind is K.CONTEXT
    bare = b'{"code":400,"message":"the request exceeds the available context size","type":"invalid_request_error"}'
    assert classify(400, bare).kind is K.CONTEXT


@pytest.mark.parametrize(
    ("status", "payload", "kind", "retryable", "blame"),
    [
        (400, error("bad"), K.CLIENT, False, False),
        (422, error("bad"), K.CLIENT, False, False),
        (401, error("Invalid API Key"), K.CREDENTIALS, True, True),
        (403, b"", K.CREDENTIALS, True, True),
        (404, error("no such model"), K.NOT_FOUND, True, False),
        (408, error("slow"), K.SERVER, True, True),
        (429, error("slow down"), K.BUSY, True, False),
        (429, b"<html>", K.BUSY, True, False),
        (500, error("boom"), K.SERVER, True, True),
        (500, error("CUDA error: out of memory"), K.MEMORY, True, False),
        (500, error("failed to find a memory slot for batch of size 512"), K.MEMORY, True, False),
        (501, error("not supported"), K.NOT_FOUND, True, False),
        (503, error("Loading model"), K.LOADING, True, False),
        (503, error("The engine is currently busy"), K.BUSY, True, False),
        (503, error("broken"), K.SERVER, True, True),
        (503, b"upstream connect error or disconnect", K.SERVER, True, True),
        (502, b"<html>", K.SERVER, True, True),
        (200, error("m", code=503), K.SERVER, True, True),
        (200, error("m", code="server_error"), K.SERVER, True, True),
        (400, b"not json", K.CLIENT, False, False),
        (400, error("prompt talks of being out of memory"), K.CLIENT, False, False),
    ],
)
def test_whose_fault(status: int, payload: bytes, kind: FailureKind, retryable: bool, blame: bool) -> None:
    failure = classify(status, payload)
    assert (failure.kind, failure.retryable, failure.blame) == (kind, retryable, blame)
    assert failure.message


def test_the_clients_words_count_over_the_status() -> None:
    words = re.compile("your fault")
    assert classify(500, error("this is your fault"), client_words=words).kind is K.CLIENT
    assert classify(500, error("this is ours"), client_words=words).kind is K.SERVER


def test_a_sidecars_text_is_not_for_clients() -> None:
    assert "upstream connect" not in classify(503, b"upstream connect error").message


def test_an_engines_message_is_bounded() -> None:
    assert len(classify(400, error("x" * 100_000)).message) <= 1000

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
    ("Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).", 59862, 160062),
    # DwarfStar
    ("Prompt has 256468 tokens, but the configured context size is 256000 tokens", 256000, 256468),
    ("Prompt has 5,958,968 tokens, but the configured context size is 256,000 tokens", 256000, 5958968),
    ("Prompt tokens (9000) exceeds context size (8192)", 8192, 9000),
    # Anthropic
    ("prompt is too long: 213462 tokens > 200000 maximum", 200000, 213462),
    (
        "input length and `max_tokens` exceed context limit: 198157 + 21333 > 200000, decrease input length or "
        "`max_tokens` and try again",
        200000,
        219490,
    ),
    # OpenAI, over the years
    (
        "This model's maximum context length is 4097 tokens. However, your messages resulted in 4363 tokens. Please "
        "reduce the length of the messages.",
        4097,
        4363,
    ),
    (
        "This model's maximum context length is 8191 tokens, however you requested 10346 tokens (10346 in your prompt; "
        "0 for the completion). Please reduce your prompt; or completion length.",
        8191,
        10346,
    ),
    ("Your input exceeds the context window of this model. Please adjust your input and try again.", None, None),
    # LM Studio
    (
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= "
        "n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input.",
        4096,
        13055,
    ),
    (
        "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the "
        "model with a larger context length, or provide a shorter input",
        None,
        None,
    ),
    (
        "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context "
        "length of only 7866 tokens, which is not enough.",
        7866,
        10136,
    ),
    # TabbyAPI, text-generation-inference
    ("Request length 71599 + 2048 is greater than max_seq_len 65536", 65536, 73647),
    ("Prompt length 9000 is greater than max_seq_len 8192", 8192, 9000),
    (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4090 `inputs` tokens and "
        "20 `max_new_tokens`",
        4096,
        4110,
    ),
    # Ollama, embeddings of llama.cpp
    ("prompt too long; exceeded max context length by 12 tokens", None, None),
    ("the input length exceeds the context length", None, None),
    (
        "input (700 tokens) is too large to process. increase the physical batch size (current batch size: 512)",
        512,
        700,
    ),
    # hosted services
    ("The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", 1048575, 1196265),
    ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131072, 537812),
    # others
    ("This model's maximum context length is 128000 tokens.", 128000, None),
    ("input length exceeds the context length", None, None),
]


@pytest.mark.parametrize("name", sorted(ENGINES))
@pytest.mark.parametrize(("wording", "limit", "requested"), OVERFLOWS)
@pytest.mark.parametrize("status", [200, 400, 413, 500])
def test_c2_every_wording_of_an_overflow(
    name: str, wording: str, limit: int | None, requested: int | None, status: int
) -> None:
    failure = ENGINES[name].failure(status, error(wording))
    assert (failure.kind, failure.limit, failure.requested) == (K.CONTEXT, limit, requested)
    assert not failure.retryable
    assert not failure.blame
    if limit is not None:
        assert f"maximum context length is {limit} tokens" in failure.message
    assert "maximum context length" in failure.message


@pytest.mark.parametrize(
    ("wording", "prompt"),
    [
        ("request (2100 tokens) exceeds the available context size (2048 tokens), try increasing it", 2100),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 30 `inputs` tokens and 9000 `max_new_tokens`", 30),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (3000 in the "
            "messages, 2000 in the completion).",
            3000,
        ),
        ("This model's maximum context length is 4096 tokens. However, your messages resulted in 4200 tokens.", 4200),
        ("prompt is too long: 210000 tokens > 200000 maximum", 210_000),
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", 190_000),
        ("maximum context length of 2048 tokens. You requested a total of 9000 tokens.", None),
        ("maximum context length is 2048 tokens. However, you requested 10 output tokens and your prompt contains "
         "at least 2039 input tokens, for a total of at least 2049 tokens.", None),
        ("max_tokens=9000 cannot be greater than max_model_len=2048", None),
    ],
)  # fmt: skip
def test_what_an_engine_counted_in_the_prompt_alone(wording: str, prompt: int | None) -> None:
    assert classify(400, error(wording)).prompt == prompt


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
        (501, error("not supported"), K.NOT_OFFERED, True, False),
        (404, b"404 page not found", K.NOT_OFFERED, True, False),
        (404, b'{"detail":"Not Found"}', K.NOT_OFFERED, True, False),
        (404, error("File Not Found", type="not_found_error", code=404), K.NOT_OFFERED, True, False),
        (404, error("Invalid URL (POST /v1/messages)"), K.NOT_OFFERED, True, False),
        (404, error("unknown endpoint"), K.NOT_OFFERED, True, False),
        (405, b'{"detail":"Method Not Allowed"}', K.NOT_OFFERED, True, False),
        (200, b'{"error":"Unexpected endpoint or method. (POST /v1/rerank)"}', K.NOT_OFFERED, True, False),
        (400, b'{"error":"Unexpected endpoint or method. (POST /v1/rerank)"}', K.NOT_OFFERED, True, False),
        (400, error("The model does not support Embeddings API"), K.NOT_OFFERED, True, False),
        (400, b'{"error":"\\"all-minilm\\" does not support chat"}', K.NOT_OFFERED, True, False),
        (404, error("This model is only supported in v1/responses", param="model"), K.NOT_OFFERED, True, False),
        (400, error("registry.ollama.ai/library/x:1b does not support tools"), K.CLIENT, False, False),
        (404, error("The model `x` does not exist.", param="model"), K.NOT_FOUND, True, False),
        (404, error("model 'x' not found"), K.NOT_FOUND, True, False),
        (404, b'{"error":"model \\"x\\" not found, try pulling it first"}', K.NOT_FOUND, True, False),
        (404, b'{"type":"error","error":{"type":"not_found_error","message":"model: x"}}', K.NOT_FOUND, True, False),
        (404, error("no", code="model_not_found"), K.NOT_FOUND, True, False),
        (404, error("Response with id 'resp_x' not found.", param="response_id"), K.CLIENT, False, False),
        (402, error("pay"), K.CREDENTIALS, True, True),
        (429, error("You exceeded your current quota", code="insufficient_quota"), K.CREDENTIALS, True, True),
        (400, error("Your credit balance is too low to access the API"), K.CREDENTIALS, True, True),
        (
            429,
            error("limit", type="rate_limit_error", details={"error_code": "enforced_spend_limit_reached"}),
            K.CREDENTIALS,
            True,
            True,
        ),
        (529, b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', K.BUSY, True, False),
        (200, b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', K.BUSY, True, False),
        (200, b'{"type":"error","error":{"type":"api_error","message":"m"}}', K.SERVER, True, True),
        (200, error("m", type="invalid_request_error"), K.CLIENT, False, False),
        (200, error("m", code="rate_limit_exceeded"), K.BUSY, True, False),
        (429, error("full", code="server_overloaded"), K.BUSY, True, False),
        (504, error("waited", code="request_queue_timeout"), K.BUSY, True, False),
        (503, error("The request queue is full.", type="503", code=503), K.BUSY, True, False),
        (503, b'{"error":"server busy, please try again.  maximum pending requests exceeded"}', K.BUSY, True, False),
        (
            500,
            b'{"error":"model requires more system memory (9 GiB) than is available (3 GiB)"}',
            K.MEMORY,
            True,
            False,
        ),
        (
            409,
            error("continuation state is not available; retry by replaying the full history"),
            K.CLIENT,
            False,
            False,
        ),
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


def test_c2_numbers_beside_the_message() -> None:
    dwarfstar = error("no", type="context_exceeded", n_prompt_tokens=9000, n_ctx=8192)
    ninfer = error("no", code="context_length_exceeded", prompt_tokens=9000, max_context=8192)
    for payload in (dwarfstar, ninfer):
        failure = classify(400, payload)
        assert (failure.kind, failure.limit, failure.requested) == (K.CONTEXT, 8192, 9000)


def test_c2_an_error_inside_an_error() -> None:
    inner = error("request (351 tokens) exceeds the available context size (256 tokens)", code=400).decode()
    failure = classify(500, json.dumps({"error": inner}).encode())
    assert (failure.kind, failure.limit, failure.requested) == (K.CONTEXT, 256, 351)
    refused = classify(500, json.dumps({"error": error("bad grammar", code=400).decode()}).encode())
    assert (refused.kind, refused.message) == (K.CLIENT, "bad grammar")


def test_the_clients_words_count_over_the_status() -> None:
    words = re.compile("your fault")
    assert classify(500, error("this is your fault"), client_words=words).kind is K.CLIENT
    assert classify(500, error("this is ours"), client_words=words).kind is K.SERVER


def test_a_sidecars_text_is_not_for_clients() -> None:
    assert "upstream connect" not in classify(503, b"upstream connect error").message


def test_an_engines_message_is_bounded() -> None:
    assert len(classify(400, error("x" * 100_000)).message) <= 1000

"""A server of which nothing is known, here one like LM Studio: built from reports on it; nothing was seen running."""

from __future__ import annotations

from gateway.engines.adapter import Answer, FailureKind
from tests.engines.cases import Case, answer


def _no_such(path: str) -> Answer:
    return answer({"error": f"Unexpected endpoint or method. (POST {path})"})


CASE = Case(
    name="openai",
    discovery={
        "/v1/models": answer({"object": "list", "data": [{"id": "a", "max_context_length": 8192}, {"id": "b"}]}),
        "/openapi.json": answer({"error": "Unexpected endpoint or method. (GET /openapi.json)"}),
    },
    follow_up={
        "/v1/completions": answer({"error": "Invalid JSON"}, 400),
        "/v1/responses": answer({"error": "Invalid JSON"}, 400),
        "/v1/messages": answer({"error": "Invalid JSON"}, 500),
        "/v1/messages/count_tokens": _no_such("/v1/messages/count_tokens"),
        "/v1/embeddings": answer({"error": "Invalid JSON"}, 400),
        "/v1/rerank": _no_such("/v1/rerank"),
        "/v1/score": answer({"detail": "Not Found"}, 404),
        "/v1/images/generations": answer("<html>", 404),
        "/v1/audio/speech": answer("", 405),
        "/v1/audio/transcriptions": answer({"error": {"message": "not here"}}, 501),
        "/v1/audio/translations": answer({"error": "no key"}, 401),
        "/v1/images/edits": answer("gone", 410),
    },
    models=(("a", 8192), ("b", None)),
    abilities=frozenset({"tools", "json_schema", "logprobs"}),
    surfaces=frozenset({"chat", "completions", "responses", "messages", "embeddings"}),
    failures=(
        (
            400,
            b'{"error":"The number of tokens to keep from the initial prompt is greater than the context length '
            b'(n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length"}',
            FailureKind.CONTEXT,
        ),
        (
            404,
            b'{"error":{"message":"no","type":"invalid_request_error","code":"model_not_found"}}',
            FailureKind.NOT_FOUND,
        ),
        (429, b'{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}', FailureKind.BUSY),
        (429, b'{"error":{"message":"quota","code":"insufficient_quota"}}', FailureKind.CREDENTIALS),
        (404, b'{"error":{"message":"Invalid URL (POST /v1/messages)"}}', FailureKind.NOT_OFFERED),
    ),
    overflow=(4096, 13055),
)

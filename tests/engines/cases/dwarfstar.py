"""DwarfStar: built from its ds4_server.c and docs/SERVER.md; nothing of it was seen running."""

from __future__ import annotations

from gateway.engines.adapter import FailureKind
from tests.engines.cases import Case, answer

_LISTED = answer(
    {
        "object": "list",
        "data": [
            {
                "id": "deepseek-v4-flash",
                "object": "model",
                "owned_by": "ds4.c",
                "context_length": 100_000,
                "top_provider": {"context_length": 100_000, "max_completion_tokens": 100_000},
            }
        ],
    }
)

CASE = Case(
    name="dwarfstar",
    discovery={"/v1/models": _LISTED},
    models=(("deepseek-v4-flash", 100_000),),
    abilities=frozenset({"tools"}),
    surfaces=None,
    loading={"/v1/models": _LISTED},
    failures=(
        (
            400,
            b'{"error":{"message":"Prompt has 256468 tokens, but the configured context size is 256000 tokens",'
            b'"type":"invalid_request_error"}}',
            FailureKind.CONTEXT,
        ),
        (404, b'{"error":{"message":"unknown endpoint","type":"invalid_request_error"}}', FailureKind.NOT_OFFERED),
        (409, b'{"error":{"message":"Responses continuation state is not available; retry"}}', FailureKind.CLIENT),
        (503, b'{"error":{"message":"server shutting down"}}', FailureKind.SERVER),
    ),
    overflow=(256_000, 256_468),
)

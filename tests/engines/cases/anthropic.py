"""Anthropic's hosted API: built from its public reference; it was not called."""

from __future__ import annotations

import json

from gateway.engines.adapter import FailureKind
from tests.engines.cases import Case, answer


def _error(kind: str, message: str, **more: object) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message, **more}}).encode()


CASE = Case(
    name="anthropic",
    discovery={
        "/v1/models": answer(
            {
                "data": [
                    {
                        "type": "model",
                        "id": "claude-a",
                        "display_name": "A",
                        "max_input_tokens": 200_000,
                        "max_tokens": 64_000,
                        "capabilities": {
                            "image_input": {"supported": True},
                            "structured_outputs": {"supported": False},
                        },
                    },
                    {"type": "model", "id": "claude-b", "display_name": "B"},
                ],
                "has_more": False,
            }
        )
    },
    models=(("claude-a", 200_000), ("claude-b", None)),
    abilities=frozenset({"tools", "vision"}),
    surfaces=None,
    failures=(
        (
            400,
            _error("invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum"),
            FailureKind.CONTEXT,
        ),
        (404, _error("not_found_error", "model: claude-x"), FailureKind.NOT_FOUND),
        (529, _error("overloaded_error", "Overloaded"), FailureKind.BUSY),
        (200, _error("overloaded_error", "Overloaded"), FailureKind.BUSY),
        (429, _error("rate_limit_error", "slow down"), FailureKind.BUSY),
        (401, _error("authentication_error", "invalid x-api-key"), FailureKind.CREDENTIALS),
        (400, _error("invalid_request_error", "Your credit balance is too low"), FailureKind.CREDENTIALS),
        (404, _error("not_found_error", "Not found"), FailureKind.NOT_OFFERED),
        (400, _error("invalid_request_error", "max_tokens: Field required"), FailureKind.CLIENT),
    ),
    overflow=(200_000, 213_462),
    credential=("x-api-key", "k"),
    surface_headers=("anthropic-version",),
)

"""NInfer: built from its docs/serving.md and openai_common.cpp; nothing of it was seen running."""

from __future__ import annotations

from gateway.engines.adapter import FailureKind, Load
from tests.engines.cases import Case, answer

CASE = Case(
    name="ninfer",
    discovery={
        "/v1/models": answer(
            {
                "object": "list",
                "data": [
                    {
                        "id": "qwen3.6-27b",
                        "object": "model",
                        "created": 1,
                        "owned_by": "ninfer",
                        "max_model_len": 240_000,
                    }
                ],
            }
        )
    },
    models=(("qwen3.6-27b", 240_000),),
    abilities=frozenset({"tools"}),
    surfaces=None,
    loading={"/health": answer({"status": "unavailable"}, 503)},
    load=Load(loading=True),
    failures=(
        (
            400,
            b'{"error":{"message":"prompt exceeds the context","type":"invalid_request_error","param":"messages",'
            b'"code":"context_length_exceeded","prompt_tokens":250000,"max_context":240000}}',
            FailureKind.CONTEXT,
        ),
        (
            404,
            b'{"error":{"message":"model \'x\' not found","param":"model","code":"model_not_found"}}',
            FailureKind.NOT_FOUND,
        ),
        (429, b'{"error":{"message":"full","type":"rate_limit_error","code":"server_overloaded"}}', FailureKind.BUSY),
        (503, b'{"error":{"message":"waited","code":"request_queue_timeout"}}', FailureKind.BUSY),
        (529, b'{"type":"error","error":{"type":"overloaded_error","message":"full"}}', FailureKind.BUSY),
        (404, b"", FailureKind.NOT_OFFERED),
        (400, b'{"error":{"message":"n must be 1","param":"n"}}', FailureKind.CLIENT),
    ),
    overflow=(240_000, 250_000),
)

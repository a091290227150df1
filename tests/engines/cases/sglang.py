"""SGLang: built from its http_server.py, scheduler state and metrics collector; nothing of it was seen running."""

from __future__ import annotations

import json

from gateway.engines.adapter import FailureKind, Load
from tests.engines.cases import Case, answer

_STATE = {"effective_max_running_requests_per_dp": 48, "memory_usage": {"token_capacity": 100_000, "weight": 15.1}}
_INFO = {
    "model_path": "m",
    "api_key": "never read",
    "page_size": 16,
    "max_total_num_tokens": 100_000,
    "max_running_requests": None,
    "tool_call_parser": "qwen25",
    "grammar_backend": "xgrammar",
    "enable_metrics": True,
    "enable_cache_report": False,
    "internal_states": [_STATE, _STATE],
    "version": "0.5.23",
}
_METRICS = """
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0",dp_rank="0"} 3.0
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0",dp_rank="1"} 2.0
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="1",dp_rank="0"} 3.0
sglang:num_queue_reqs{engine_type="unified",model_name="m",tp_rank="0",dp_rank="0"} 1.0
sglang:num_used_tokens{engine_type="unified",model_name="m",tp_rank="0",dp_rank="0"} 30000.0
sglang:num_used_tokens{engine_type="unified",model_name="m",tp_rank="0",dp_rank="1"} 20000.0
sglang:token_usage{engine_type="unified",model_name="m",tp_rank="0",dp_rank="0"} 0.3
sglang:token_usage{engine_type="unified",model_name="m",tp_rank="0",dp_rank="1"} 0.2
sglang:generation_tokens_total{model_name="m"} 7557.0
"""
_PATHS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/embeddings",
    "/v1/rerank",
    "/v1/score",
    "/v1/tokenize",
    "/v1/detokenize",
    "/v1/audio/transcriptions",
    "/api/chat",
    "/api/generate",
)


def _error(message: str, code: int, kind: str = "BadRequestError") -> bytes:
    return json.dumps({"object": "error", "message": message, "type": kind, "param": None, "code": code}).encode()


CASE = Case(
    name="sglang",
    discovery={
        "/v1/models": answer({"object": "list", "data": [{"id": "m", "root": "m", "max_model_len": 131_072}]}),
        "/server_info": answer({"detail": "Not Found"}, 404),
        "/model_info": answer({"detail": "Not Found"}, 404),
        "/openapi.json": answer({"paths": {path: {} for path in _PATHS}}),
    },
    follow_up={
        "/get_server_info": answer(_INFO),
        "/get_model_info": answer({"is_generation": True, "has_image_understanding": True}),
    },
    models=(("m", 100_000),),
    slots=96,
    pool=200_000,
    version="0.5.23",
    abilities=frozenset({"tools", "json_schema", "logprobs", "vision"}),
    surfaces=frozenset({"chat", "completions", "responses", "messages", "count_tokens", "tokenize", "detokenize"}),
    loading={"/metrics": answer(_METRICS)},
    load=Load(running=5, waiting=1, kv_usage=0.25, kv_tokens=50_000, tokens_generated=7557.0),
    failures=(
        (
            400,
            _error("The input (61709 tokens) is longer than the model's context length (40960 tokens).", 400),
            FailureKind.CONTEXT,
        ),
        (
            400,
            _error(
                "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a "
                "total of 9000 tokens: 8500 tokens from the input messages and 500 tokens for the completion.",
                400,
            ),
            FailureKind.CONTEXT,
        ),
        (
            404,
            b'{"error":{"message":"The model \'x\' does not exist","code":"model_not_found"}}',
            FailureKind.NOT_FOUND,
        ),
        (200, b'{"error":{"message":"The request queue is full.","code":503}}', FailureKind.BUSY),
        (404, b'{"object":"error","message":"Not Found","type":"404","code":404}', FailureKind.NOT_OFFERED),
        (400, _error("This model does not appear to be an embedding model by default.", 400), FailureKind.NOT_OFFERED),
        (500, _error("Internal server error: boom", 500, "InternalServerError"), FailureKind.SERVER),
    ),
    overflow=(40960, 61709),
    drops=frozenset({"rid", "priority", "cache_salt", "extra_key", "data_parallel_rank"}),
)

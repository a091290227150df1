"""vLLM 0.32: recorded, but for the list of paths, which is built from the routes in its wheel."""

from __future__ import annotations

from gateway.engines.adapter import Answer, FailureKind, Load
from tests.engines.cases import Case, answer
from tests.recordings import recording


def _recorded(name: str) -> Answer:
    return Answer(*recording("vllm", name))


_PATHS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/tokenize",
    "/detokenize",
    "/v1/models",
    "/metrics",
)

CASE = Case(
    name="vllm",
    discovery={
        "/v1/models": _recorded("get_models"),
        "/metrics": _recorded("get_metrics"),
        "/version": _recorded("get_version"),
        "/openapi.json": answer({"openapi": "3.1.0", "paths": {path: {"post": {}} for path in _PATHS}}),
    },
    models=(("tiny", 2048),),
    pool=2097152,
    version="0.32.0",
    abilities=frozenset({"tools", "json_schema", "logprobs"}),
    surfaces=frozenset({"chat", "completions", "responses", "messages", "count_tokens", "tokenize", "detokenize"}),
    loading={"/metrics": _recorded("get_metrics")},
    load=Load(
        running=0,
        waiting=0,
        kv_usage=0.0,
        kv_tokens=0,
        preemptions=0.0,
        tokens_generated=257.0,
        restarted_at=1.79606907093e9,
    ),
    failures=(
        (400, recording("vllm", "err_prompt_too_long").body, FailureKind.CONTEXT),
        (400, recording("vllm", "err_prompt_too_long_messages").body, FailureKind.CONTEXT),
        (404, recording("vllm", "err_unknown_model").body, FailureKind.NOT_FOUND),
        (404, recording("vllm", "messages_unknown_model").body, FailureKind.NOT_FOUND),
        (503, recording("vllm", "overload_503_messages").body, FailureKind.BUSY),
        (503, recording("vllm", "overload_max_num_queued_reqs_503").body, FailureKind.BUSY),
        (404, recording("vllm", "embeddings").body, FailureKind.NOT_OFFERED),
        (405, recording("vllm", "post_models_405").body, FailureKind.NOT_OFFERED),
        (404, recording("vllm", "responses_previous_id").body, FailureKind.CLIENT),
    ),
    overflow=(2048, 2049),
    drops=frozenset({"request_id", "priority", "cache_salt", "kv_transfer_params"}),
)

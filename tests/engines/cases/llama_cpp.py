"""llama.cpp's server: recorded. It runs a text model without --embeddings."""

from __future__ import annotations

from gateway.engines.adapter import Answer, FailureKind, Load
from tests.engines.cases import Case
from tests.recordings import recording


def _recorded(name: str) -> Answer:
    return Answer(*recording("llama.cpp", name))


CASE = Case(
    name="llama.cpp",
    discovery={"/props": _recorded("get_props"), "/v1/models": _recorded("get_models")},
    follow_up={
        "/v1/responses": _recorded("err_bad_json"),
        "/v1/messages": _recorded("err_bad_json"),
        "/v1/messages/count_tokens": _recorded("err_bad_json"),
        "/v1/embeddings": _recorded("embeddings_not_enabled"),
        "/v1/rerank": _recorded("rerank_not_enabled"),
        "/tokenize": _recorded("err_bad_json"),
        "/detokenize": _recorded("err_bad_json"),
        "/v1/audio/transcriptions": _recorded("get_root_404"),
    },
    models=(("smollm2", 4096),),
    slots=2,
    pool=8192,
    version="b0-unknown",
    abilities=frozenset({"json_schema", "logprobs"}),
    surfaces=frozenset({"chat", "completions", "responses", "messages", "count_tokens", "tokenize", "detokenize"}),
    loading={"/slots": _recorded("overload_slots"), "/metrics": _recorded("overload_metrics")},
    load=Load(running=2, waiting=4, kv_tokens=72, tokens_generated=24.0),
    failures=(
        (400, recording("llama.cpp", "err_prompt_too_long").body, FailureKind.CONTEXT),
        (400, recording("llama.cpp", "err_prompt_too_long_messages").body, FailureKind.CONTEXT),
        (503, recording("llama.cpp", "loading_chat").body, FailureKind.LOADING),
        (404, recording("llama.cpp", "get_root_404").body, FailureKind.NOT_OFFERED),
        (501, recording("llama.cpp", "rerank_not_enabled").body, FailureKind.NOT_OFFERED),
        (401, recording("llama.cpp", "api_key_missing_401").body, FailureKind.CREDENTIALS),
    ),
    overflow=(4096, 6031),
    drops=frozenset({"id_slot"}),
)

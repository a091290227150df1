"""Ollama: built from its routes.go and API documents; nothing of it was seen running."""

from __future__ import annotations

from gateway.engines.adapter import FailureKind
from gateway.engines.ollama_models import GENERATES
from tests.engines.cases import Case, answer


def _entry(name: str, size: int, family: str, digest: str, **more: object) -> dict[str, object]:
    details = {"format": "gguf", "family": family, "parameter_size": "8.2B", "quantization_level": "Q4_K_M"}
    return {"name": name, "model": name, "size": size, "digest": digest, "details": details, **more}


CASE = Case(
    name="ollama",
    discovery={
        "/api/tags": answer(
            {
                "models": [
                    _entry("qwen3:8b", 5_200_000_000, "qwen3", "d1"),
                    _entry("writer:latest", 5_200_000_000, "llama", "d2"),
                    _entry("all-minilm:latest", 45_960_996, "bert", "d3"),
                    _entry("gpt-oss:120b-cloud", 384, "gptoss", "d4", remote_host="https://ollama.com:443"),
                ]
            }
        ),
        "/api/ps": answer({"models": [{"name": "qwen3:8b", "size_vram": 6_000_000_000, "context_length": 32_768}]}),
        "/api/version": answer({"version": "0.14.2"}),
    },
    follow_up={
        "/api/show qwen3:8b d1": answer(
            {
                "parameters": 'stop                           "<|im_end|>"',
                "model_info": {"general.parameter_count": 8_190_735_360, "qwen3.context_length": 40_960},
                "capabilities": ["completion", "tools", "thinking"],
            }
        ),
        "/api/show writer:latest d2": answer(
            {
                "parameters": "num_ctx                        16384\ntemperature                    0.7",
                "model_info": {"llama.context_length": 131_072},
                "capabilities": ["completion", "vision"],
            }
        ),
        "/api/show all-minilm:latest d3": answer(
            {"model_info": {"bert.context_length": 512}, "capabilities": ["embedding"]}
        ),
        "/v1/responses": answer({"error": {"message": "unexpected EOF", "type": "invalid_request_error"}}, 400),
        "/v1/messages": answer("404 page not found", 404),
    },
    models=(("qwen3:8b", 32_768), ("writer:latest", 16_384), ("all-minilm:latest", None)),
    version="0.14.2",
    abilities=frozenset({"tools", "json_schema", "logprobs"}),
    surfaces=(GENERATES - {"messages"}) | {"embeddings", "ollama_embed"},
    loading={"/api/version": answer({"version": "0.14.2"})},
    failures=(
        (400, b'{"error":"prompt too long; exceeded max context length by 12 tokens"}', FailureKind.CONTEXT),
        (500, b'{"error":"the input length exceeds the context length"}', FailureKind.CONTEXT),
        (404, b'{"error":"model \\"x\\" not found, try pulling it first"}', FailureKind.NOT_FOUND),
        (
            503,
            b'{"error":"server busy, please try again.  maximum pending requests exceeded"}',
            FailureKind.BUSY,
        ),
        (404, b"404 page not found", FailureKind.NOT_OFFERED),
        (400, b'{"error":"\\"all-minilm\\" does not support generate"}', FailureKind.NOT_OFFERED),
        (400, b'{"error":"\\"qwen3:8b\\" does not support thinking"}', FailureKind.CLIENT),
        (500, b'{"error":"llama runner process has terminated: exit status 2"}', FailureKind.SERVER),
    ),
    overflow=(None, None),
    drops=frozenset({"keep_alive"}),
)

"""What the scripted engine answers beside generations: models, figures, counts and embeddings."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from tests.recordings import recording

__all__ = ["WINDOW", "Page", "pages"]

WINDOW = 262_144
"""Tokens; Claude Code and Codex leave room for long answers."""

Page = Callable[[web.Request], Awaitable[web.Response]]
_VECTOR = [0.25, -0.5, 1.0]
_DETAILS = {"format": "gguf", "family": "qwen3", "parameter_size": "4B", "quantization_level": "Q4_K_M"}


def pages(flavour: str, models: tuple[str, ...], probed: list[str]) -> dict[str, Page]:
    """The pages of that flavour by path; `probed` is told each path that is looked at."""
    told = {"object": "model", "created": 1_800_000_000, "owned_by": "scripted", "max_model_len": WINDOW}
    found: dict[str, Page] = {}

    def fixed(path: str, body: Any, kind: str = "application/json") -> None:
        async def answer(request: web.Request) -> web.Response:
            probed.append(request.path)
            return web.Response(body=body if isinstance(body, bytes) else json.dumps(body).encode(), content_type=kind)

        found[path] = answer

    if flavour == "anthropic":
        told = {"type": "model", "created_at": "2027-01-15T08:00:00Z", "max_input_tokens": WINDOW}
        listed = [{"id": name, "display_name": name, **told} for name in models]
        fixed("/v1/models", {"data": listed, "has_more": False, "first_id": models[0], "last_id": models[-1]})
        return found | {"/v1/messages/count_tokens": _count}
    fixed("/v1/models", {"object": "list", "data": [{"id": name, **told} for name in models]})
    found["/v1/embeddings"] = _embeddings
    if flavour == "vllm":
        fixed("/version", recording("vllm", "get_version").body)
        fixed("/metrics", recording("vllm", "get_metrics").body, "text/plain")
        found["/v1/messages/count_tokens"] = _count
    if flavour == "ollama":
        known = {"modified_at": "2027-01-15T08:00:00Z", "size": 2_500_000_000, "digest": "0" * 64, "details": _DETAILS}
        fixed("/api/tags", {"models": [{"name": name, "model": name, **known} for name in models]})
        fixed("/api/version", {"version": "0.13.0"})
        fixed("/api/ps", {"models": []})
        found |= {"/api/embed": _embed, "/api/show": _show(models)}
    return found


def _show(models: tuple[str, ...]) -> Page:
    info = {"general.architecture": "qwen3", "general.parameter_count": 4_000_000_000, "qwen3.context_length": WINDOW}
    known = {"details": _DETAILS, "model_info": info, "capabilities": ["completion", "tools", "thinking", "embedding"]}

    async def answer(request: web.Request) -> web.Response:
        body = await _json(request)
        if body.get("model") not in models:
            return web.json_response({"error": f"model '{body.get('model')}' not found"}, status=404)
        return web.json_response({**known, "parameters": f"num_ctx {WINDOW}", "template": "", "modelfile": ""})

    return answer


async def _json(request: web.Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.read())
    except ValueError:
        raise web.HTTPBadRequest(text='{"error":{"message":"not JSON"}}', content_type="application/json") from None
    return body if isinstance(body, dict) else {}


async def _count(request: web.Request) -> web.Response:
    await _json(request)
    return web.json_response({"input_tokens": len(await request.read()) // 4})


async def _embeddings(request: web.Request) -> web.Response:
    body = await _json(request)
    count = len(body["input"]) if isinstance(body["input"], list) else 1
    data = [{"object": "embedding", "index": number, "embedding": _VECTOR} for number in range(count)]
    usage = {"prompt_tokens": 3 * count, "total_tokens": 3 * count}
    return web.json_response({"object": "list", "model": body["model"], "data": data, "usage": usage})


async def _embed(request: web.Request) -> web.Response:
    body = await _json(request)
    count = len(body["input"]) if isinstance(body["input"], list) else 1
    return web.json_response({"model": body["model"], "embeddings": [_VECTOR] * count, "prompt_eval_count": 3 * count})

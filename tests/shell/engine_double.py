"""Scripted engines that also answer probes, as llama.cpp, vLLM or a plain OpenAI-compatible server.

Their probe pages are recordings of the real servers with a few numbers replaced, so an adapter reads them as the real
thing; what they generate is a script's business.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from tests.recordings import Recording, recording
from tests.relay.fake_engine import DONE, STREAM_HEAD, FakeEngine, Request, Script, Wire, chunk, json_answer, raw

__all__ = ["EngineDouble", "llama_cpp", "openai_compatible", "page", "says", "vllm", "vllm_metrics"]

RECORDED = cache(recording)
COUNTING = frozenset(
    (
        "/tokenize",
        "/apply-template",
        "/v1/chat/completions/input_tokens",
        "/v1/responses/input_tokens",
        "/v1/messages/count_tokens",
    )
)
"""Where the gateway has prompts counted."""


def page(body: bytes | object, status: int = 200, kind: str = "application/json") -> Script:
    """One probe's answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n"
    return raw(head.encode(), data)


class EngineDouble(FakeEngine):
    """GETs get a page each, POSTs the scripts in turn, the last one for every request after.

    `flavour` is the adapter's name in a file. `pages` may be changed while it runs. `asked` are the generation requests
    so far, `probed` the paths that were asked for. `counted` are the prompts whose tokens it was asked to count: it has
    no route for that, unless there is a page for it.
    """

    def __init__(self, flavour: str, pages: dict[str, Script], *scripts: Script) -> None:
        super().__init__(self._answer)
        self.flavour = flavour
        self.pages = pages
        self.scripts_left = list(scripts or (says("ok"),))
        self.asked: list[Request] = []
        self.probed: list[str] = []
        self.counted: list[Request] = []
        self.busy = self.most_busy = 0

    async def __aenter__(self) -> EngineDouble:
        await super().__aenter__()
        return self

    def now_plays(self, *scripts: Script) -> None:
        """Other scripts from here on."""
        self.scripts_left = list(scripts)

    def body(self, index: int = -1) -> Any:
        """A request's body, read."""
        return json.loads(self.asked[index].body)

    async def asked_for(self, count: int, seconds: float = 5.0) -> None:
        """Wait until so many generation requests have come."""
        await self.until(lambda: len(self.asked) >= count, seconds)

    async def quiet(self, seconds: float = 5.0) -> None:
        """Wait until no generation request is being answered."""
        await self.until(lambda: self.busy == 0, seconds)

    async def _answer(self, request: Request, wire: Wire) -> None:
        method, path, _ = request.line.split(" ", 2)
        if method == "GET":
            self.probed.append(path)
            await self.pages.get(path, page({"error": {"message": "not found", "code": 404}}, 404))(request, wire)
            return
        if request.body == b"{":  # whether there is such a route; see gateway.engines.routes
            self.probed.append(path)
            await self.pages.get(path, page({"error": {"message": "parse error", "code": 400}}, 400))(request, wire)
            return
        if path in COUNTING and (path != "/tokenize" or b'"messages"' in request.body or b'"add_' in request.body):
            self.counted.append(request)
            await self.pages.get(path, page({"error": {"message": "not found", "code": 404}}, 404))(request, wire)
            return
        self.asked.append(request)
        script = self.scripts_left.pop(0) if len(self.scripts_left) > 1 else self.scripts_left[0]
        self.busy += 1
        self.most_busy = max(self.busy, self.most_busy)
        self._changed.set()
        try:
            await script(request, wire)
        except RuntimeError as error:  # uvloop's words for a transport that is closed
            raise ConnectionResetError from error
        finally:
            self.busy -= 1
            self._changed.set()


def says(
    *words: str,
    prompt: int = 20,
    cached: int = 0,
    first: float = 0.0,
    gap: float = 0.0,
    finish: str = "stop",
    until: asyncio.Event | None = None,
) -> Script:
    """These words as a stream or whole, as the request asks, under the model name it asked for.

    `first` seconds before the first token, `gap` between tokens; with `until`, the last word waits for that event.
    """

    async def script(request: Request, wire: Wire) -> None:
        asked = json.loads(request.body)
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": len(words),
            "total_tokens": prompt + len(words),
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        base = {"id": "chatcmpl-1", "created": 1, "model": asked.get("model", "tiny"), "system_fingerprint": "double"}
        chat = "messages" in asked
        if not asked.get("stream"):
            await asyncio.sleep(first + gap * len(words))
            if until is not None:
                await until.wait()
            text = "".join(words)
            said = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
            kind = "chat.completion" if chat else "text_completion"
            choice = {"index": 0, **said, "finish_reason": finish}
            await json_answer({**base, "object": kind, "choices": [choice], "usage": usage})(request, wire)
            return

        def event(said: dict[str, Any] | None, reason: str | None = None, **more: Any) -> bytes:
            kind = "chat.completion.chunk" if chat else "text_completion"
            choices = [] if said is None else [{"index": 0, **said, "finish_reason": reason}]
            line = json.dumps({**base, "object": kind, "choices": choices, **more}, ensure_ascii=False)
            return chunk(b"data: " + line.encode() + b"\n\n")

        def piece(text: str) -> dict[str, Any]:
            return {"delta": {"content": text}} if chat else {"text": text}

        await wire.send(STREAM_HEAD)
        if chat:
            await wire.send(event({"delta": {"role": "assistant", "content": None}}))
        await asyncio.sleep(first)
        for number, word in enumerate(words):
            if number:
                await asyncio.sleep(gap)
            if until is not None and number == len(words) - 1:
                await until.wait()
            await wire.send(event(piece(word)))
        await wire.send(event({"delta": {}} if chat else {"text": ""}, finish))
        if (asked.get("stream_options") or {}).get("include_usage"):
            await wire.send(event(None, usage=usage))
        await wire.send(chunk(DONE), b"0\r\n\r\n")

    return script


def llama_cpp(*scripts: Script, model: str = "smollm2", slots: int = 2, window: int = 4096) -> EngineDouble:
    """llama-server with so many slots of so many tokens each."""
    props = json.loads(RECORDED("llama.cpp", "get_props").body)
    props["total_slots"] = slots
    props["default_generation_settings"]["n_ctx"] = window
    props["model_alias"] = model
    listed = json.loads(RECORDED("llama.cpp", "get_models").body)
    entry = listed["data"][0]
    entry |= {"id": model, "aliases": [model]}
    entry["meta"] |= {"n_ctx": window, "n_ctx_train": 4 * window}
    idle = json.loads(RECORDED("llama.cpp", "get_slots_idle").body)
    numbered = [{**idle[0], "id": number, "n_ctx": window} for number in range(slots)]
    metrics = RECORDED("llama.cpp", "get_metrics")
    pages = {
        "/props": page(props),
        "/v1/models": page(listed),
        "/slots": page(numbered),
        "/metrics": _text(metrics, metrics.body),
        "/health": page({"status": "ok"}),
    }
    return EngineDouble("llama.cpp", pages, *scripts)


def vllm(
    *scripts: Script, model: str = "tiny", window: int = 2048, pool: int = 2_097_152, block: int = 16
) -> EngineDouble:
    """vLLM's server with a pool of so many tokens."""
    listed = json.loads(RECORDED("vllm", "get_models").body)
    listed["data"][0] |= {"id": model, "root": model, "max_model_len": window}
    pages = {
        "/v1/models": page(listed),
        "/metrics": vllm_metrics(pool=pool, block=block, window=window),
        "/version": page(RECORDED("vllm", "get_version").body),
        "/health": page(b""),
    }
    return EngineDouble("vllm", pages, *scripts)


def vllm_metrics(
    *,
    pool: int = 2_097_152,
    block: int = 16,
    window: int = 2048,
    running: int = 0,
    usage: float = 0.0,
    edit: Callable[[str], str] = str,
) -> Script:
    """vLLM's metrics page with these figures; `edit` changes its text further."""
    recorded = RECORDED("vllm", "get_metrics")
    text = recorded.body.decode()
    figures = {
        "kv_cache_size_tokens": pool,
        "block_size": block,
        "effective_attention_block_size": block,
        "num_gpu_blocks": pool // block,
        "kv_cache_max_concurrency": pool / window,
    }
    for label, value in figures.items():
        text = re.sub(rf'([{{,]{label}=")[\d.]+"', rf'\g<1>{value}"', text)
    for name, number in (("num_requests_running", running), ("kv_cache_usage_perc", usage)):
        text = re.sub(rf"^(vllm:{name}{{.*}}) .*$", rf"\g<1> {number}", text, flags=re.MULTILINE)
    return _text(recorded, edit(text).encode())


def openai_compatible(*scripts: Script, model: str = "some-model") -> EngineDouble:
    """A server that lists its model and tells nothing else."""
    listed = {"object": "list", "data": [{"id": model, "object": "model", "created": 1, "owned_by": "somebody"}]}
    return EngineDouble("openai", {"/v1/models": page(listed)}, *scripts)


def _text(recorded: Recording, body: bytes) -> Script:
    return page(body, kind=recorded.headers["content-type"])

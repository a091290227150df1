"""An HTTP server on loopback that serves the script on a chosen set of surfaces, and remembers what it was asked.

With `flavour` it looks like an engine that kvgate has an adapter for: "openai" (a server that lists its models and
speaks chat), "vllm" (responses and messages too) or "ollama".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiohttp import web

from tests.clients.engine import chat, messages, ollama, responses
from tests.clients.engine.script import Script, Step, Turn
from tests.clients.engine.sending import Events
from tests.recordings import recording

__all__ = ["FLAVOURS", "MODEL", "SMALL", "WINDOW", "Asked", "ScriptedEngine"]

MODEL, SMALL, WINDOW = "scripted", "scripted-small", 262_144

FLAVOURS: dict[str, frozenset[str]] = {
    "openai": frozenset({"chat", "completions", "embeddings"}),
    "vllm": frozenset({"chat", "completions", "responses", "messages", "count_tokens", "embeddings"}),
    "ollama": frozenset({"chat", "completions", "ollama_chat", "ollama_generate", "ollama_embed", "embeddings"}),
}
"""The surfaces that each flavour has."""

_ReadTurn = Callable[[dict[str, Any]], Turn]
_Whole = Callable[[Turn, Step, str], dict[str, Any]]
_Streamed = Callable[[Turn, Step, str], Events]


@dataclass(frozen=True, slots=True)
class _Speech:
    """How one generating surface is read and answered."""

    path: str
    read: _ReadTurn
    whole: _Whole
    streamed: _Streamed
    content_type: str = "text/event-stream"


def _completion_turn(body: dict[str, Any]) -> Turn:
    shown = (body.get("stream_options") or {}).get("include_usage") is True
    return Turn(body["model"], body.get("stream") is True, str(body["prompt"]), show_usage=shown)


def _ollama(is_chat: bool, path: str) -> _Speech:
    return _Speech(
        path,
        ollama.ollama_turn,
        lambda turn, step, key: ollama.ollama_whole(turn, step, chat=is_chat),
        lambda turn, step, key: ollama.ollama_events(turn, step, chat=is_chat),
        "application/x-ndjson",
    )


_SPEECH = {
    "chat": _Speech("/v1/chat/completions", chat.chat_turn, chat.chat_whole, chat.chat_events),
    "completions": _Speech("/v1/completions", _completion_turn, chat.completion_whole, chat.completion_events),
    "responses": _Speech(
        "/v1/responses", responses.responses_turn, responses.responses_whole, responses.responses_events
    ),
    "messages": _Speech("/v1/messages", messages.messages_turn, messages.messages_whole, messages.messages_events),
    "ollama_chat": _ollama(True, "/api/chat"),
    "ollama_generate": _ollama(False, "/api/generate"),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One generation request that came in, and what was answered. `complaints`: what stricter engines would refuse."""

    surface: str
    headers: dict[str, str]
    body: dict[str, Any]
    turn: Turn
    step: Step
    complaints: tuple[str, ...] = ()


@dataclass
class ScriptedEngine:
    """`async with ScriptedEngine(flavour) as engine: engine.url`. `asked` and `probed` grow while it serves."""

    flavour: str = "openai"
    script: Script = field(default_factory=Script)
    models: tuple[str, ...] = (MODEL, SMALL)
    asked: list[Asked] = field(default_factory=list, init=False)
    probed: list[str] = field(default_factory=list, init=False)
    refused: list[str] = field(default_factory=list, init=False)
    """What it could not answer: unknown paths, models and bodies."""
    url: str = field(default="", init=False)
    _runner: web.AppRunner = field(init=False)
    _answers: int = field(default=0, init=False)

    async def __aenter__(self) -> ScriptedEngine:
        application = web.Application(client_max_size=128 << 20)
        for name in FLAVOURS[self.flavour] & _SPEECH.keys():
            application.router.add_post(_SPEECH[name].path, partial(self._generate, name))
        for path, answer in self._plain().items():
            application.router.add_route("*", path, answer)
        application.router.add_route("*", "/{rest:.*}", self._unknown)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def surfaces(self) -> list[str]:
        """The surface of each generation request so far."""
        return [asked.surface for asked in self.asked]

    # --- generation

    async def _generate(self, surface: str, request: web.Request) -> web.StreamResponse:
        speech = _SPEECH[surface]
        try:
            body = json.loads(await request.read())
        except ValueError:
            return _error(400, "not JSON")  # which is also how a gateway finds out whether the route is there
        try:
            turn = speech.read(body)
        except (KeyError, TypeError, AttributeError) as error:
            self.refused.append(f"{surface}: {type(error).__name__} {error}")
            return _error(400, f"bad request: {type(error).__name__} {error}")
        if turn.model not in self.models:
            self.refused.append(f"{surface}: model {turn.model}")
            return _error(404, f"The model `{turn.model}` does not exist.")
        step = self.script.step(turn)
        complaints = tuple(chat.chat_complaints(body)) if surface == "chat" else ()
        self.asked.append(Asked(surface, dict(request.headers), body, turn, step, complaints))
        self._answers += 1
        key = f"{self._answers:016d}"
        if not turn.stream:
            return web.json_response(speech.whole(turn, step, key))
        reply = web.StreamResponse(headers={"content-type": speech.content_type})
        await reply.prepare(request)
        try:
            for event in speech.streamed(turn, step, key):
                await reply.write(event)
            await reply.write_eof()
        except ConnectionResetError:  # clients leave after the last event that they care for
            pass
        return reply

    # --- everything else

    def _plain(self) -> dict[str, Callable[[web.Request], Any]]:
        pages: dict[str, Callable[[web.Request], Any]] = {"/v1/models": self._models}
        if "embeddings" in FLAVOURS[self.flavour]:
            pages["/v1/embeddings"] = self._embeddings
        if self.flavour == "vllm":
            pages["/version"] = self._page(recording("vllm", "get_version").body, "application/json")
            pages["/metrics"] = self._page(recording("vllm", "get_metrics").body, "text/plain")
            pages["/v1/messages/count_tokens"] = self._count
        if self.flavour == "ollama":
            pages["/api/tags"] = self._tags
            pages["/api/version"] = self._page(b'{"version":"0.13.0"}', "application/json")
            pages["/api/ps"] = self._page(b'{"models":[]}', "application/json")
            pages["/api/show"] = self._show
            pages["/api/embed"] = self._embed
        return pages

    def _page(self, data: bytes, kind: str) -> Callable[[web.Request], Any]:
        async def answer(request: web.Request) -> web.Response:
            self.probed.append(request.path)
            return web.Response(body=data, content_type=kind)

        return answer

    async def _models(self, request: web.Request) -> web.Response:
        self.probed.append(request.path)
        told = {"object": "model", "created": 1_800_000_000, "owned_by": "scripted", "max_model_len": WINDOW}
        return web.json_response({"object": "list", "data": [{"id": name, **told} for name in self.models]})

    async def _count(self, request: web.Request) -> web.Response:
        body = await request.read()
        return web.json_response({"input_tokens": len(body) // 4})

    async def _embeddings(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        count = len(body["input"]) if isinstance(body["input"], list) else 1
        data = [{"object": "embedding", "index": n, "embedding": [0.25, -0.5, 1.0]} for n in range(count)]
        usage = {"prompt_tokens": 3 * count, "total_tokens": 3 * count}
        return web.json_response({"object": "list", "model": body["model"], "data": data, "usage": usage})

    async def _embed(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        count = len(body["input"]) if isinstance(body["input"], list) else 1
        return web.json_response({"model": body["model"], "embeddings": [[0.25, -0.5, 1.0]] * count})

    async def _tags(self, request: web.Request) -> web.Response:
        self.probed.append(request.path)
        details = {"format": "gguf", "family": "qwen3", "parameter_size": "4B", "quantization_level": "Q4_K_M"}
        known = {"modified_at": "2027-01-15T08:00:00Z", "size": 2_500_000_000, "digest": "0" * 64, "details": details}
        models = [{"name": name, "model": name, **known} for name in self.models]
        return web.json_response({"models": models})

    async def _show(self, request: web.Request) -> web.Response:
        self.probed.append(request.path)
        body = json.loads(await request.read())
        if body.get("model") not in self.models:
            return web.json_response({"error": f"model '{body.get('model')}' not found"}, status=404)
        details = {"format": "gguf", "family": "qwen3", "parameter_size": "4B", "quantization_level": "Q4_K_M"}
        info = {
            "general.architecture": "qwen3",
            "general.parameter_count": 4_000_000_000,
            "qwen3.context_length": WINDOW,
        }
        answer = {"details": details, "model_info": info, "capabilities": ["completion", "tools", "thinking"]}
        return web.json_response({**answer, "parameters": f"num_ctx {WINDOW}", "template": "", "modelfile": ""})

    async def _unknown(self, request: web.Request) -> web.Response:
        try:
            json.loads(await request.read())
            self.refused.append(f"{request.method} {request.path}")
        except ValueError:
            self.probed.append(request.path)
        return web.json_response({"detail": "Not Found"}, status=404)


def _error(status: int, message: str) -> web.Response:
    kind = "NotFoundError" if status == 404 else "BadRequestError"
    return web.json_response(
        {"error": {"message": message, "type": kind, "param": None, "code": status}}, status=status
    )

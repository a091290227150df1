"""An HTTP server on loopback that serves the script on a chosen set of surfaces, and remembers what it was asked.

With `flavour` it looks like an engine that kvgate has an adapter for: "openai" (a server that lists its models and
speaks chat), "vllm" (responses and messages too), "ollama", or "anthropic" (a hosted service that has only messages).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiohttp import web

from gateway.wire.surfaces import SURFACES
from tests.clients.engine import chat, messages, ollama, responses
from tests.clients.engine.pages import WINDOW, pages
from tests.clients.engine.script import Script, Step, Turn
from tests.clients.engine.sending import Events

__all__ = ["FLAVOURS", "MODEL", "SMALL", "WINDOW", "Asked", "ScriptedEngine"]

MODEL, SMALL = "scripted", "scripted-small"

FLAVOURS: dict[str, frozenset[str]] = {
    "openai": frozenset({"chat", "completions", "embeddings"}),
    "vllm": frozenset({"chat", "completions", "responses", "messages", "count_tokens", "embeddings"}),
    "anthropic": frozenset({"messages", "count_tokens"}),
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
        for path, answer in pages(self.flavour, self.models, self.probed).items():
            application.router.add_route("*", path, answer)
        if self.flavour == "vllm":
            application.router.add_get("/openapi.json", self._routes)
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
        complaints = self._complaints(surface, request, body)
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

    def _complaints(self, surface: str, request: web.Request, body: dict[str, Any]) -> tuple[str, ...]:
        if surface == "chat":
            return tuple(chat.chat_complaints(body))
        if self.flavour == "anthropic":
            return tuple(messages.messages_complaints(body, request.headers))
        return ()

    async def _routes(self, request: web.Request) -> web.Response:
        self.probed.append(request.path)
        return web.json_response({"paths": {SURFACES[name].path: {} for name in FLAVOURS[self.flavour]}})

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

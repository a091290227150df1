"""What clients of every surface are told of an engine that speaks chat."""

from __future__ import annotations

import json
from typing import Any

from gateway.wire.chat_request import ChatRequest
from gateway.wire.finishing import Finishing, finished
from gateway.wire.formats import FORMATS
from gateway.wire.reading import read_request
from gateway.wire.sse import Framer
from gateway.wire.stream_view import EventKind
from gateway.wire.translated_stream import TranslatedStream
from gateway.wire.translation import Stamp
from gateway.wire.translations import translation

__all__ = ["BODIES", "DONE", "TRANSLATED", "chunk", "streamed", "whole"]

BODIES: dict[str, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "x"}]},
    "messages": {"messages": [{"role": "user", "content": "x"}], "max_tokens": 5},
    "responses": {"input": "x"},
    "ollama_chat": {"messages": [{"role": "user", "content": "x"}]},
    "ollama_generate": {"prompt": "x"},
}
TRANSLATED = ("messages", "responses", "ollama_chat", "ollama_generate")
DONE = b"data: [DONE]\n\n"
_STAMP = Stamp("a1", 1_700_000_000, "m", stream=True)


def chunk(delta: dict[str, Any] | None = None, reason: str | None = None) -> bytes:
    """One event of chat's."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": reason}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def _asked(surface: str, **more: Any) -> tuple[ChatRequest, bytes]:
    body = json.dumps({"model": "m", "stream": True, **BODIES[surface], **more}).encode()
    return read_request(surface, body), body


def streamed(surface: str, *events: bytes, **asked: Any) -> bytes:
    """All that the client gets of these. Raises StreamBroken where it is told of a failure."""
    chat, body = _asked(surface, **asked)
    form = FORMATS["chat"]
    view = form.view(chat, None, True)
    if surface != "chat":
        way = translation(surface, "chat")
        view = TranslatedStream(view, way.writer(way.request(body).context, _STAMP), form.framing(), form.data)
    framer, out = Framer(), b""
    for event in (each for data in events for each in framer.feed(data)):
        seen = view.see(event)
        if seen.kind is EventKind.ERROR:
            raise AssertionError(f"an event that can't be read: {seen.error}")
        out += seen.forward
    assert view.terminal
    return out + view.closing()


def whole(surface: str, message: dict[str, Any], reason: str | None = "stop", **asked: Any) -> Any:
    """The answer that the client gets. Raises StreamBroken where it is told of a failure."""
    chat, body = _asked(surface, **asked)
    context = None if surface == "chat" else translation(surface, "chat").request(body).context
    answer = {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}
    return json.loads(finished(Finishing(chat, "chat", None, context, _STAMP), json.dumps(answer).encode())[1])

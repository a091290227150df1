"""What an answer says, read through the types of the official SDKs, whole or from its events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from gateway.wire.sse import Framer, data_of
from tests.clients.answers import streams, whole
from tests.clients.answers.said import WHOLE, Ill, Said, need

__all__ = ["WHOLE", "Ill", "Said", "events_of", "said"]

_READ: dict[str, Callable[[Any], Said]] = {
    "chat": whole.chat,
    "completions": whole.completions,
    "responses": whole.responses,
    "messages": whole.messages,
    "ollama_chat": lambda value: streams.ollama_lines([value]),
    "ollama_generate": lambda value: streams.ollama_lines([value]),
}

_STREAMED: dict[str, Callable[[list[Any]], Said]] = {
    "chat": streams.chat_chunks,
    "completions": streams.completion_chunks,
    "responses": streams.response_events,
    "messages": streams.message_events,
    "ollama_chat": streams.ollama_lines,
    "ollama_generate": streams.ollama_lines,
}


def events_of(surface: str, body: bytes) -> Iterator[Any]:
    """The events as the SDK's stream reader hands them out. Raises Ill when the body ends within one."""
    if surface.startswith("ollama"):
        need(body.endswith(b"\n"), "the last line has no end")
        yield from map(json.loads, body.splitlines())
        return
    framer = Framer()
    found = [data.strip() for event in framer.feed(body) if (data := data_of(event)) is not None]
    need(framer.tail == b"", f"the body ends within an event: {framer.tail[:100]!r}")
    if surface in ("chat", "completions"):
        need(found and found.pop() == b"[DONE]", "the last event is not [DONE]")
    yield from (event for data in found if data and (event := json.loads(data)).get("type") != "ping")


def said(surface: str, body: bytes, *, stream: bool) -> Said:
    """Read an answer. Raises Ill, or pydantic's ValidationError, for one that is not well-formed."""
    if stream:
        return _STREAMED[surface](list(events_of(surface, body)))
    value = json.loads(body)
    WHOLE[surface].validate_python(value)
    return _READ[surface](value)

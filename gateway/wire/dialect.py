"""How each family of clients is told of an error, kept waiting, and sent a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.errors import GatewayError
from gateway.wire.anthropic import errors as anthropic
from gateway.wire.error_body import error_event, openai_error
from gateway.wire.ollama import errors as ollama
from gateway.wire.responses import errors as responses
from gateway.wire.surfaces import SURFACES

__all__ = ["DIALECTS", "EVENT_STREAM", "NDJSON", "OPENAI", "Dialect", "dialect_of"]

EVENT_STREAM = "text/event-stream"
NDJSON = "application/x-ndjson"
_COMMENT = b": keepalive\n\n"
"""Event stream parsers skip it; sockets and proxies see traffic."""
_WAITING = b'{"model":"","created_at":"1970-01-01T00:00:00Z",%b,"done":false}\n'
"""A line of Ollama's that says nothing yet, with all members that its clients' types ask for."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way to talk to clients.

    body: an error as a whole answer. event: an error inside a stream. cut: after that event the connection is cut,
    since several clients skip the event and take a clean end for success. keepalive: what changes nothing for a client
    that waits. stream_type: the content type of streams.
    """

    name: str
    body: Callable[[GatewayError], bytes]
    event: Callable[[GatewayError], bytes]
    keepalive: bytes = _COMMENT
    stream_type: str = EVENT_STREAM
    cut: bool = True


OPENAI = Dialect("openai", openai_error, error_event)

DIALECTS: dict[str, Dialect] = {
    each.name: each
    for each in (
        OPENAI,
        # Nobody takes a stream without `response.completed` for success, and Codex acts on the error's code (it
        # compacts, or waits as told) only after a clean end; after a cut it just asks again.
        Dialect("responses", openai_error, responses.error_event, cut=False),
        Dialect("anthropic", anthropic.error_body, anthropic.error_event),
        # Lines have no comments; an empty piece of text is the nearest thing.
        Dialect(
            "ollama_chat",
            ollama.error_body,
            ollama.error_line,
            _WAITING % b'"message":{"role":"assistant","content":""}',
            NDJSON,
        ),
        Dialect("ollama_generate", ollama.error_body, ollama.error_line, _WAITING % b'"response":""', NDJSON),
    )
}


def dialect_of(surface: str) -> Dialect:
    """The dialect of a surface; OpenAI's where there is no such surface."""
    known = SURFACES.get(surface)
    return OPENAI if known is None else DIALECTS[known.dialect]

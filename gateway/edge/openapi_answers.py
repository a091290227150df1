"""What the public port answers, as OpenAPI: errors in three dialects, and the content types of answers."""

from __future__ import annotations

from typing import Any

from gateway.edge.routes import Route
from gateway.wire.surfaces import SURFACES, Kind

__all__ = ["RESPONSES", "SCHEMAS", "responses"]

_Node = dict[str, Any]

_TEXT: _Node = {"type": "string"}

SCHEMAS: dict[str, _Node] = {
    "OpenAIError": {
        "description": "`code` is stable; `reason` and `decision_id` are there when a decision was made.",
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["message", "type", "param", "code"],
                "properties": {
                    "message": _TEXT,
                    "type": _TEXT,
                    "param": {"type": ["string", "null"]},
                    "code": _TEXT,
                    "reason": _TEXT,
                    "decision_id": _TEXT,
                },
            }
        },
    },
    "AnthropicError": {
        "type": "object",
        "required": ["type", "error"],
        "properties": {
            "type": {"const": "error"},
            "error": {
                "type": "object",
                "required": ["type", "message"],
                "properties": {"type": _TEXT, "message": _TEXT},
            },
        },
    },
    "OllamaError": {
        "type": "object",
        "required": ["error"],
        "properties": {"error": _TEXT, "code": _TEXT},
    },
}
SCHEMAS["OpenAIOrAnthropicError"] = {
    "anyOf": [{"$ref": f"#/components/schemas/{each}Error"} for each in ("OpenAI", "Anthropic")]
}
"""Errors by the dialect they are in."""

_SPEAKERS = {
    "openai": "OpenAI",
    "responses": "OpenAI",
    "anthropic": "Anthropic",
    "ollama_chat": "Ollama",
    "ollama_generate": "Ollama",
}
_RETRY: _Node = {"retry-after": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1, "maximum": 59}}}
_KINDS: dict[str, tuple[str, bool]] = {
    "Refused": ("Refused; the same request would be again.", False),
    "Full": ("Working backends are full, or a limit of this key is reached.", True),
    "EngineFailed": ("The engine failed.", False),
    "NobodyWorks": ("No backend works now.", True),
    "EngineSilent": ("The engine was silent for too long.", False),
}
_STATUSES = {"4XX": "Refused", "429": "Full", "502": "EngineFailed", "503": "NobodyWorks", "504": "EngineSilent"}

RESPONSES: dict[str, _Node] = {
    f"{speaker}{kind}": {
        "description": said,
        **({"headers": _RETRY} if retry else {}),
        "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{speaker}Error"}}},
    }
    for speaker in ("OpenAI", "Anthropic", "Ollama", "OpenAIOrAnthropic")
    for kind, (said, retry) in _KINDS.items()
    if speaker != "OpenAIOrAnthropic" or kind == "Refused"
}
"""Error answers by dialect and kind."""

_ANSWERS = {
    "speech": ("audio/*",),
    "transcriptions": ("application/json", "text/plain", "text/event-stream"),
    "translations": ("application/json", "text/plain"),
    "images": ("application/json", "text/event-stream"),
    "image_edits": ("application/json", "text/event-stream"),
}
"""Content types of answers where they are more than JSON and, of a generation, its stream."""
_SHARED = frozenset(("models", "model", "root"))


def responses(route: Route, method: str) -> _Node:
    """Every answer of one operation, by status."""
    if method == "HEAD":
        made: _Node = {"200": {"description": "The head of GET's answer."}, "4XX": {"description": "Refused."}}
        return made | ({"503": {"description": "Not ready."}} if route.name == "ready" else {})
    speaker = "OpenAIOrAnthropic" if route.name in _SHARED else _SPEAKERS[route.dialect.name]
    statuses = _STATUSES if route.surface is not None else {"4XX": "Refused"}
    made = {status: {"$ref": f"#/components/responses/{speaker}{kind}"} for status, kind in statuses.items()}
    if route.name == "ready":
        made["503"] = {"description": "Not ready.", "content": {"application/json": {"schema": {"type": "object"}}}}
    if route.name != "stored_response":
        made["200"] = {"description": "The answer.", "content": _content(route)}
    return made


def _content(route: Route) -> _Node:
    types: tuple[str, ...] = ("application/json",)
    if route.surface is not None:
        types = _ANSWERS.get(route.surface, types)
        if SURFACES[route.surface].kind is Kind.GENERATION:
            types = ("application/json", route.dialect.stream_type)
    return {each: {"schema": {"type": "object"}} if each == "application/json" else {} for each in types}

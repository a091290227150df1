"""What an answer says, and the types of the official SDKs that it must have."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, get_args

import anthropic.types
import ollama
import openai.types.chat
import openai.types.responses
from pydantic import TypeAdapter

__all__ = ["WHOLE", "Ill", "Said", "arguments_of", "check_event", "need"]

WHOLE: dict[str, TypeAdapter[Any]] = {
    "chat": TypeAdapter(openai.types.chat.ChatCompletion),
    "completions": TypeAdapter(openai.types.Completion),
    "responses": TypeAdapter(openai.types.responses.Response),
    "messages": TypeAdapter(anthropic.types.Message),
    "ollama_chat": TypeAdapter(ollama.ChatResponse),
    "ollama_generate": TypeAdapter(ollama.GenerateResponse),
    "count_tokens": TypeAdapter(anthropic.types.MessageTokensCount),
    "embeddings": TypeAdapter(openai.types.CreateEmbeddingResponse),
    "ollama_embed": TypeAdapter(ollama.EmbedResponse),
}
"""A whole answer, by surface."""

_CHUNK = TypeAdapter(openai.types.chat.ChatCompletionChunk)


def _by_type(union: Any) -> dict[str, TypeAdapter[Any]]:
    """The members of a union of models by what their `type` says."""
    members = get_args(get_args(union)[0])
    return {get_args(member.model_fields["type"].annotation)[0]: TypeAdapter(member) for member in members}


_NAMED = {
    "responses": _by_type(openai.types.responses.ResponseStreamEvent),
    "messages": _by_type(anthropic.types.RawMessageStreamEvent),
}


def check_event(surface: str, event: Any) -> None:
    """Hold one event of a stream to the SDK's type of it. Raises Ill or pydantic's ValidationError."""
    if surface not in _NAMED:
        (_CHUNK if surface == "chat" else WHOLE[surface]).validate_python(event)
        return
    adapter = _NAMED[surface].get(event["type"])
    need(adapter, f"no SDK knows the event {event['type']}")
    assert adapter is not None
    adapter.validate_python(event)


class Ill(Exception):
    """An answer that no client should be sent."""


@dataclass(slots=True)
class Said:
    """The content of an answer. `calls` are names and arguments, decoded."""

    text: str = ""
    thought: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    usage: tuple[int, int] | None = None
    """Prompt tokens with the cached ones, output tokens."""


def need(right: object, message: str) -> None:
    """Raise Ill with that message unless it is right."""
    if not right:
        raise Ill(message)


def arguments_of(text: str) -> Any:
    """A tool call's arguments. Raises Ill when they are not JSON."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise Ill(f"tool arguments are not JSON: {text[:100]!r}") from error

"""The members of Ollama's answers, whole or a line of a stream."""

from __future__ import annotations

from typing import Any

from gateway.errors import StreamBroken
from gateway.wire.ollama.created_at import created_at
from gateway.wire.raw_members import encode
from gateway.wire.translation import Stamp

__all__ = ["head", "json_of", "said"]

_LINE_ENDS = tuple((end.encode(), b"\\u%04x" % ord(end)) for end in "\u2028\u2029\u0085")
"""To httpx, and so to ollama-python, these end a line too. Ollama's server escapes the first two (encoding/json)."""


def head(stamp: Stamp) -> dict[str, Any]:
    """What every answer and line begins with. There is one time only: that of the stamp."""
    return {"model": stamp.model, "created_at": created_at(stamp.created)}


def said(generate: bool, text: str, thought: str = "", calls: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """What was said: /api/generate has it on top and has no calls, /api/chat in a message."""
    if generate:
        return {"response": text, **({"thinking": thought} if thought else {})}
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if thought:
        message["thinking"] = thought
    if calls:
        message["tool_calls"] = calls
    return {"message": message}


def json_of(members: dict[str, Any]) -> bytes:
    """The members as JSON that stays on one line. Raises StreamBroken for text that no UTF-8 can carry."""
    try:
        json = encode(members)
    except (UnicodeError, ValueError, RecursionError) as error:
        raise StreamBroken("the engine's answer can't be written as JSON") from error
    if not json.isascii():
        for end, escaped in _LINE_ENDS:
            json = json.replace(end, escaped)
    return json

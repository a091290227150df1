"""What is read of a chat answer, whole or a chunk of a stream."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.wire.anthropic.chat_answer import Call, Delta, Function, read_chat, text_of

__all__ = [
    "Call",
    "ChatAnswer",
    "ChatChunk",
    "Choice",
    "Delta",
    "Function",
    "log_probabilities",
    "read_chat",
    "text_of",
]


class Choice(msgspec.Struct, gc=False):
    """One choice."""

    index: int | None = None
    message: Delta | None = None
    delta: Delta | None = None
    finish_reason: str | None = None
    logprobs: Any = None


class ChatAnswer(msgspec.Struct):
    """A whole answer."""

    choices: list[Choice]
    usage: Any = None
    timings: Any = None
    error: Any = None


class ChatChunk(msgspec.Struct, gc=False):
    """One event of a stream."""

    choices: list[Choice] | None = None
    usage: Any = None
    timings: Any = None
    error: Any = None


def log_probabilities(told: object) -> list[dict[str, Any]]:
    """The log probabilities of a choice's text in the shape of a response; none for what has another shape."""
    entries = told.get("content") if isinstance(told, dict) else None
    return [_entry(entry) for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    top = entry.get("top_logprobs")
    return {
        **_token(entry),
        "top_logprobs": [_token(each) for each in top if isinstance(each, dict)] if isinstance(top, list) else [],
    }


def _token(entry: dict[str, Any]) -> dict[str, Any]:
    return {"token": entry.get("token"), "bytes": entry.get("bytes") or [], "logprob": entry.get("logprob")}

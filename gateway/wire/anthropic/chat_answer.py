"""What is read of a chat answer, whole or a chunk of a stream. Members that engines fill with anything are `Any`."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import StreamBroken

__all__ = ["Call", "ChatAnswer", "ChatChunk", "Choice", "Delta", "Function", "stopped_by", "text_of"]


class Function(msgspec.Struct, gc=False):
    """The function that is called; in a stream both are pieces."""

    name: str | None = None
    arguments: Any = None


class Call(msgspec.Struct, gc=False):
    """One tool call, or a piece of one."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Delta(msgspec.Struct, gc=False):
    """A message, or a piece of one. Engines name their reasoning one way or the other, some both ways."""

    content: Any = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[Call] | None = None


class Choice(msgspec.Struct, gc=False):
    """One choice. stop_reason (vLLM) and matched_stop (SGLang): the stop string that was met, or a token's id."""

    index: int | None = None
    message: Delta | None = None
    delta: Delta | None = None
    finish_reason: str | None = None
    stop_reason: Any = None
    matched_stop: Any = None


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


def text_of(content: object) -> str:
    """The text of a message's content: a string, or a list of parts."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if not isinstance(content, list):
        raise StreamBroken("the engine sent content that is no text")
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def stopped_by(choice: Choice, stops: tuple[str, ...]) -> str | None:
    """The stop sequence that ended the choice, where the engine tells."""
    for told in (choice.stop_reason, choice.matched_stop):
        if isinstance(told, str) and told in stops:
            return told
    return None

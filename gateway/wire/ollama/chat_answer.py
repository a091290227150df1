"""What is read of a chat or text completions answer, whole or a chunk of a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.usage import Usage, usage_of

__all__ = ["Call", "ChatAnswer", "Choice", "Function", "Message", "read_chat", "text_of", "usage_in", "usage_told"]

_T = TypeVar("_T")


class Function(msgspec.Struct, gc=False):
    """The function that is called; in a stream both are pieces."""

    name: str | None = None
    arguments: Any = None


class Call(msgspec.Struct, gc=False):
    """One tool call, or a piece of one."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Message(msgspec.Struct, gc=False):
    """A message, or a piece of one. Engines name their reasoning one way or the other, some both ways."""

    content: Any = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[Call] | None = None


class Choice(msgspec.Struct, gc=False):
    """One choice; text completions have `text` in place of a message."""

    index: int | None = None
    message: Message | None = None
    delta: Message | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: Any = None


class ChatAnswer(msgspec.Struct, gc=False):
    """An answer, or one event of its stream."""

    choices: list[Choice] | None = None
    usage: Any = None
    timings: Any = None
    error: Any = None


_ANSWER = msgspec.json.Decoder(ChatAnswer)


def read_chat(data: bytes) -> ChatAnswer:
    """Decode an answer or a chunk. Raises StreamBroken for what is none, or an error."""
    try:
        answer = _ANSWER.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        answer = _loose(data)
    if answer.error:
        raise StreamBroken("the engine sent an error in place of an answer")
    return answer


def _loose(data: bytes) -> ChatAnswer:
    try:  # NaN and numbers past 64 bits, which engines written in Python send
        return msgspec.convert(json.loads(data), ChatAnswer)
    except (ValueError, RecursionError) as error:
        raise StreamBroken("the engine sent what is no chat answer") from error


def text_of(content: object) -> str:
    """The text of a message's content: a string, or a list of parts. Raises StreamBroken for anything else."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if not isinstance(content, list):
        raise StreamBroken("the engine sent content that is no text")
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def usage_in(answer: ChatAnswer) -> Mapping[str, Any]:
    """What `UsageTally` reads."""
    return {"usage": answer.usage, "timings": answer.timings}


def usage_told(answer: ChatAnswer) -> Usage | None:
    """What a whole answer cost."""
    return usage_of(usage_in(answer))

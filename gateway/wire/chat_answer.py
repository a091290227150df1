"""What is read of a chat or text completions answer to write it in another dialect, whole or a chunk of a stream.

Members that engines fill with anything are `Any`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.engine_json import read_engine

__all__ = [
    "Call",
    "ChatAnswer",
    "Choice",
    "Delta",
    "Function",
    "name_and_arguments",
    "read_chat",
    "read_chunk",
    "text_of",
    "usage_in",
]

_NO_CHUNK = (b"[DONE]", b"null", b"")


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
    function_call: Any = None

    @property
    def calls(self) -> list[Call]:
        """The tool calls, or the one function call of the API before them. Raises StreamBroken for one that is none."""
        if self.tool_calls or not isinstance(self.function_call, dict):
            return self.tool_calls or []
        try:
            return [Call(0, None, msgspec.convert(self.function_call, Function))]
        except msgspec.ValidationError as error:
            raise StreamBroken("the engine sent a function call that is none") from error


class Choice(msgspec.Struct, gc=False):
    """One choice; text completions have `text` in place of a message.

    stop_reason (vLLM) and matched_stop (SGLang): the stop string that was met, or a token's id.
    """

    index: int | None = None
    message: Delta | None = None
    delta: Delta | None = None
    text: str | None = None
    finish_reason: str | None = None
    stop_reason: Any = None
    matched_stop: Any = None
    logprobs: Any = None


class ChatAnswer(msgspec.Struct, gc=False):
    """An answer, or one event of its stream."""

    choices: list[Choice] | None = None
    usage: Any = None
    timings: Any = None
    error: Any = None


_ANSWER = msgspec.json.Decoder(ChatAnswer)


def read_chat(body: bytes) -> tuple[ChatAnswer, Choice]:
    """A whole answer and its first choice. Raises StreamBroken for what has none."""
    told = _read(body, "chat answer")
    if not told.choices:
        raise StreamBroken("the engine's answer has no choices")
    return told, told.choices[0]


def read_chunk(data: bytes) -> ChatAnswer | None:
    """One event's data as a chunk, None for `[DONE]` and blank ones. Raises StreamBroken for what is no chunk."""
    return None if data.strip() in _NO_CHUNK else _read(data, "chat chunk")


def _read(data: bytes, what: str) -> ChatAnswer:
    told = read_engine(_ANSWER, data, what)
    if told.error:
        raise StreamBroken(f"the engine sent an error in place of a {what}")
    return told


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


def name_and_arguments(call: Call) -> tuple[str | None, object]:
    """Of a whole call, as the engine wrote them."""
    return (None, None) if call.function is None else (call.function.name, call.function.arguments)


def usage_in(told: ChatAnswer) -> Mapping[str, Any]:
    """What `usage_of` and `UsageTally` read; empty where nothing is told."""
    if told.usage is None and told.timings is None:
        return {}
    return {"usage": told.usage, "timings": told.timings}

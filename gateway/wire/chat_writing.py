"""Write chat answers of what engines say in other dialects: whole ones, and the chunks of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.wire.chat_wanted import Wanted
from gateway.wire.translation import Stamp
from gateway.wire.usage import Usage

__all__ = ["ChatChunks", "chat_answer", "chat_usage"]

_encode = msgspec.json.Encoder().encode


class ChatChunks:
    """The chunks of one stream with one choice; `context` is a `Wanted`."""

    __slots__ = ("_head", "_started", "_wanted")

    def __init__(self, context: object, stamp: Stamp) -> None:
        self._head = b"data: " + _encode(_marks(stamp, "chat.completion.chunk"))[:-1]
        self._wanted = isinstance(context, Wanted) and context.include_usage
        self._started = False

    def start(self) -> bytes:
        """The chunk that says that an answer begins; nothing when it was written before."""
        if self._started:
            return b""
        self._started = True
        return self.chunk({"role": "assistant", "content": ""})

    def chunk(self, delta: Mapping[str, Any], reason: str | None = None, logprobs: object = None) -> bytes:
        """One chunk."""
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return self._head + b',"choices":[' + _encode(choice) + b"]}\n\n"

    def end(self, reason: str, usage: Mapping[str, Any]) -> bytes:
        """Why the answer ended, what it cost if that was asked for, and `[DONE]`."""
        chunks = [self.start(), self.chunk({}, reason)]
        if self._wanted:
            chunks.append(self._head + b',"choices":[],"usage":' + _encode(usage) + b"}\n\n")
        chunks.append(b"data: [DONE]\n\n")
        return b"".join(chunks)


def chat_answer(
    stamp: Stamp, message: Mapping[str, Any], reason: str, usage: Mapping[str, Any], logprobs: object = None
) -> bytes:
    """A whole answer with one choice."""
    choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": reason}
    return _encode({**_marks(stamp, "chat.completion"), "choices": [choice], "usage": usage})


def chat_usage(usage: Usage | None) -> dict[str, Any]:
    """The `usage` of a chat answer, in tokens; zeros for what the engine did not tell."""
    prompt = (usage.prompt_tokens or 0) if usage is not None else 0
    completion = (usage.completion_tokens or 0) if usage is not None else 0
    figures: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    if usage is not None and usage.cached_tokens is not None:
        figures["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    return figures


def _marks(stamp: Stamp, kind: str) -> dict[str, object]:
    return {"id": f"chatcmpl-{stamp.id}", "object": kind, "created": stamp.created, "model": stamp.model}

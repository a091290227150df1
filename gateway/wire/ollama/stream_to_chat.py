"""The lines of /api/chat as a chat stream."""

from __future__ import annotations

from typing import Any

from gateway.wire.ollama.answer_to_chat import chat_usage
from gateway.wire.ollama.done_reason import finish_reason
from gateway.wire.ollama.logprobs import chat_logprobs
from gateway.wire.ollama.ollama_answer import calls_in, read_ollama, said_in, usage_told
from gateway.wire.ollama.request_from_chat import Wanted
from gateway.wire.ollama.writing import json_of
from gateway.wire.raw_members import encode
from gateway.wire.translation import Stamp
from gateway.wire.usage import Usage

__all__ = ["ChatWriter"]


class ChatWriter:
    """Writes chat chunks as lines arrive; `context` is what `from_chat` gave. A StreamWriter."""

    __slots__ = ("_calls", "_done_reason", "_head", "_stamp", "_started", "_usage", "_wanted")

    def __init__(self, context: object, stamp: Stamp) -> None:
        head = {
            "id": f"chatcmpl-{stamp.id}",
            "object": "chat.completion.chunk",
            "created": stamp.created,
            "model": stamp.model,
        }
        self._head = b"data: " + encode(head)[:-1]
        self._stamp = stamp
        self._wanted = isinstance(context, Wanted) and context.include_usage
        self._started = False
        self._calls = 0
        self._done_reason: str | None = None
        self._usage: Usage | None = None

    def feed(self, data: bytes) -> bytes:
        """Take one line's JSON; return the chunks that it gives. Raises StreamBroken for what is no line."""
        if not data.strip():
            return b""
        line = read_ollama(data)
        if line.done:
            self._done_reason = line.done_reason
            self._usage = usage_told(line)
        text, thought = said_in(line)
        chunks = [self._start()]
        if thought:
            chunks.append(self._chunk({"reasoning_content": thought}))
        probabilities = chat_logprobs(line.logprobs) if line.logprobs else None
        if text or probabilities:
            chunks.append(self._chunk({"content": text}, logprobs=probabilities))
        for call in calls_in(line, self._calls, self._stamp.id):
            chunks.append(self._chunk({"tool_calls": [{"index": self._calls, **call}]}))
            self._calls += 1
        return b"".join(chunks)

    def end(self) -> bytes:
        """Why the answer ended, what it cost if that was asked for, and `[DONE]`."""
        chunks = [self._start(), self._chunk({}, finish_reason(self._done_reason, calls=bool(self._calls)))]
        if self._wanted:
            chunks.append(self._head + b',"choices":[],"usage":' + encode(chat_usage(self._usage)) + b"}\n\n")
        chunks.append(b"data: [DONE]\n\n")
        return b"".join(chunks)

    def _start(self) -> bytes:
        if self._started:
            return b""
        self._started = True
        return self._chunk({"role": "assistant", "content": ""})

    def _chunk(self, delta: dict[str, Any], reason: str | None = None, logprobs: object = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return self._head + b',"choices":[' + json_of(choice) + b"]}\n\n"

"""The lines of /api/chat as a chat stream."""

from __future__ import annotations

from gateway.wire.chat_writing import ChatChunks, chat_usage
from gateway.wire.ollama.done_reason import finish_reason
from gateway.wire.ollama.logprobs import chat_logprobs
from gateway.wire.ollama.ollama_answer import calls_in, read_ollama, said_in, usage_told
from gateway.wire.translation import Stamp
from gateway.wire.usage import Usage

__all__ = ["ChatWriter"]


class ChatWriter:
    """Writes chat chunks as lines arrive; `context` is what `from_chat` gave. A StreamWriter."""

    __slots__ = ("_calls", "_chunks", "_done_reason", "_stamp", "_usage")

    def __init__(self, context: object, stamp: Stamp) -> None:
        self._chunks = ChatChunks(context, stamp)
        self._stamp = stamp
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
        chunks = [self._chunks.start()]
        if thought:
            chunks.append(self._chunks.chunk({"reasoning_content": thought}))
        probabilities = chat_logprobs(line.logprobs) if line.logprobs else None
        if text or probabilities:
            chunks.append(self._chunks.chunk({"content": text}, logprobs=probabilities))
        for call in calls_in(line, self._calls, self._stamp.id):
            chunks.append(self._chunks.chunk({"tool_calls": [{"index": self._calls, **call}]}))
            self._calls += 1
        return b"".join(chunks)

    def end(self) -> bytes:
        """Why the answer ended, what it cost if that was asked for, and `[DONE]`."""
        reason = finish_reason(self._done_reason, calls=bool(self._calls))
        return self._chunks.end(reason, chat_usage(self._usage))

"""A whole answer of /api/chat as a chat answer."""

from __future__ import annotations

from typing import Any

from gateway.errors import StreamBroken
from gateway.wire.chat_writing import chat_answer, chat_usage
from gateway.wire.ollama.done_reason import finish_reason
from gateway.wire.ollama.logprobs import chat_logprobs
from gateway.wire.ollama.ollama_answer import calls_in, read_ollama, said_in, usage_told
from gateway.wire.translation import Stamp

__all__ = ["answer"]


def answer(body: bytes, _context: object, stamp: Stamp) -> bytes:
    """The answer as one of chat with one choice; thinking becomes `reasoning_content`.

    Raises StreamBroken for what is no answer, or not done.
    """
    told = read_ollama(body)
    if not told.done:
        raise StreamBroken("the engine's answer is not done")
    text, thought = said_in(told)
    calls = calls_in(told, 0, stamp.id)
    message: dict[str, Any] = {"role": "assistant", "content": text if text or not calls else None}
    if thought:
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = calls
    reason = finish_reason(told.done_reason, calls=bool(calls))
    return chat_answer(stamp, message, reason, chat_usage(usage_told(told)), chat_logprobs(told.logprobs))

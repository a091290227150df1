"""A whole answer of /api/chat as a chat answer."""

from __future__ import annotations

from typing import Any

from gateway.errors import StreamBroken
from gateway.wire.ollama.done_reason import finish_reason
from gateway.wire.ollama.logprobs import chat_logprobs
from gateway.wire.ollama.ollama_answer import calls_in, read_ollama, said_in, usage_told
from gateway.wire.ollama.writing import json_of
from gateway.wire.translation import Stamp
from gateway.wire.usage import Usage

__all__ = ["answer", "chat_usage"]


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
    choice = {
        "index": 0,
        "message": message,
        "logprobs": chat_logprobs(told.logprobs),
        "finish_reason": finish_reason(told.done_reason, calls=bool(calls)),
    }
    return json_of(
        {
            "id": f"chatcmpl-{stamp.id}",
            "object": "chat.completion",
            "created": stamp.created,
            "model": stamp.model,
            "choices": [choice],
            "usage": chat_usage(usage_told(told)),
        }
    )


def chat_usage(usage: Usage | None) -> dict[str, Any]:
    """The `usage` of a chat answer; zeros for what the engine did not tell."""
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

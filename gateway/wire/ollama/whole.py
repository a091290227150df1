"""An engine's own whole answer on its way to the client: what it cost, and the model's name as the client knows it."""

from __future__ import annotations

import contextlib

import msgspec

from gateway.errors import MalformedRequest, StreamBroken
from gateway.wire.answer import WholeAnswer
from gateway.wire.members import engine_members
from gateway.wire.ollama.done_reason import finish_reason
from gateway.wire.ollama.ollama_answer import read_ollama, usage_told
from gateway.wire.splice import splice

__all__ = ["read_answer"]


def read_answer(body: bytes, model_alias: str | None) -> WholeAnswer | None:
    """Read an answer of /api/chat or /api/generate; `model_alias` None leaves the model's name.

    finish_reason is in chat's words. None when it is no such answer: no JSON object, one with neither a message nor a
    response, one that is not done, or one with an error.
    """
    try:
        answer = read_ollama(body)
    except StreamBroken:
        return None
    if not answer.done or (answer.message is None and answer.response is None):
        return None
    if model_alias is not None:
        with contextlib.suppress(MalformedRequest):  # of more members than are looked through
            found = engine_members(body)
            if any(member.key == "model" for member in found):
                body = splice(body, {"model": msgspec.json.encode(model_alias)}, found)
    calls = answer.message is not None and bool(answer.message.tool_calls)
    return WholeAnswer(body, usage_told(answer), finish_reason(answer.done_reason, calls=calls))

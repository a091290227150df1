"""An engine's own whole message on its way to the client: what it cost, and the model's name as the client knows it."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import StreamBroken
from gateway.wire.answer import WholeAnswer, renamed
from gateway.wire.anthropic.stop_reason import finish_reason
from gateway.wire.anthropic.usage import messages_usage
from gateway.wire.engine_json import read_engine

__all__ = ["read_answer"]


class _Answer(msgspec.Struct):
    content: list[msgspec.Raw]
    model: Any = None
    stop_reason: str | None = None
    usage: Any = None
    error: Any = None


_ANSWER = msgspec.json.Decoder(_Answer)


def read_answer(body: bytes, model_alias: str | None) -> WholeAnswer | None:
    """Read an answer of /v1/messages; `model_alias` None leaves the model's name. finish_reason is in chat's words.

    None when it is no such answer: no JSON object, or one without content or with an error.
    """
    try:
        answer = read_engine(_ANSWER, body, "message")
    except StreamBroken:
        return None
    if answer.error:
        return None
    body = renamed(body, answer.model, model_alias)
    return WholeAnswer(body, messages_usage(answer.usage), finish_reason(answer.stop_reason))

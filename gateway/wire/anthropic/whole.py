"""An engine's own whole message on its way to the client: what it cost, and the model's name as the client knows it."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.answer import WholeAnswer
from gateway.wire.anthropic.stop_reason import finish_reason
from gateway.wire.anthropic.usage import messages_usage
from gateway.wire.splice import splice

__all__ = ["read_answer"]


class _Answer(msgspec.Struct):
    content: list[msgspec.Raw]
    model: Any = None
    stop_reason: str | None = None
    usage: Any = None
    error: Any = None


class _Loose(msgspec.Struct):
    content: list[Any]
    model: Any = None
    stop_reason: str | None = None
    usage: Any = None
    error: Any = None


_ANSWER = msgspec.json.Decoder(_Answer)


def read_answer(body: bytes, model_alias: str | None) -> WholeAnswer | None:
    """Read an answer of /v1/messages; `model_alias` None leaves the model's name. finish_reason is in chat's words.

    None when it is no such answer: no JSON object, or one without content or with an error.
    """
    answer = _decoded(body)
    if answer is None or answer.error:
        return None
    if model_alias is not None and answer.model not in (None, model_alias):
        with contextlib.suppress(MalformedRequest):  # readable to SDKs only (NaN)
            body = splice(body, {"model": msgspec.json.encode(model_alias)})
    return WholeAnswer(body, messages_usage(answer.usage), finish_reason(answer.stop_reason))


def _decoded(body: bytes) -> _Answer | _Loose | None:
    try:
        return _ANSWER.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        pass
    try:  # NaN and numbers past 64 bits, which engines written in Python send and SDKs read
        return msgspec.convert(json.loads(body), _Loose)
    except (ValueError, RecursionError):
        return None

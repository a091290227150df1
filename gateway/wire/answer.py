"""A whole answer on its way to the client: what it cost, and the model's name as the client knows it."""

from __future__ import annotations

import contextlib
from typing import Annotated, Any, NamedTuple

import msgspec

from gateway.errors import MalformedRequest, StreamBroken
from gateway.wire.engine_json import read_engine
from gateway.wire.splice import splice
from gateway.wire.usage import Usage, usage_of

__all__ = ["WholeAnswer", "read_answer", "renamed"]


class WholeAnswer(NamedTuple):
    """`body` with `model` shown as the client knows it, its usage, and the first choice's finish_reason."""

    body: bytes
    usage: Usage | None
    finish_reason: str | None


class _Choice(msgspec.Struct):
    finish_reason: Any = None


class _Answer(msgspec.Struct):
    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1)]
    model: Any = None
    usage: Any = None
    timings: Any = None
    error: Any = None


_ANSWER = msgspec.json.Decoder(_Answer)


def read_answer(body: bytes, model_alias: str | None) -> WholeAnswer | None:
    """Read an answer of /v1/chat/completions or /v1/completions; `model_alias` None leaves the model's name.

    None when it is no such answer: no JSON object, or one without choices or with an error.
    """
    try:
        answer = read_engine(_ANSWER, body, "chat answer")
    except StreamBroken:
        return None
    if answer.error:
        return None
    usage = usage_of({"usage": answer.usage, "timings": answer.timings})
    reason = answer.choices[0].finish_reason
    body = renamed(body, answer.model, model_alias)
    return WholeAnswer(body, usage, reason if isinstance(reason, str) else None)


def renamed(body: bytes, told: object, model_alias: str | None) -> bytes:
    """An answer with the model's name as the client knows it; `told` is the engine's, None where it tells none."""
    if model_alias is not None and told not in (None, model_alias):
        with contextlib.suppress(MalformedRequest):  # of more members than are looked through
            return splice(body, {"model": msgspec.json.encode(model_alias)})
    return body

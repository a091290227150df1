"""An engine's own whole response on its way to the client."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.wire.answer import WholeAnswer, renamed
from gateway.wire.engine_json import UNREADABLE, json_of
from gateway.wire.responses.ending import finish_reason
from gateway.wire.responses.usage import response_usage

__all__ = ["answer_id", "read_answer"]


def read_answer(body: bytes, model_alias: str | None) -> WholeAnswer | None:
    """Read an answer of /v1/responses; `model_alias` None leaves the model's name.

    None when it is no such answer: no JSON object, one without an output, or one that failed.
    """
    response: Any = json_of(body)
    if response is UNREADABLE or not isinstance(response, dict):
        return None
    if response.get("error") or response.get("status") == "failed" or not isinstance(response.get("output"), list):
        return None
    body = renamed(body, response.get("model"), model_alias)
    return WholeAnswer(body, response_usage(response.get("usage"), response.get("timings")), finish_reason(response))


class _Named(msgspec.Struct):
    id: str


_NAMED = msgspec.json.Decoder(_Named)


def answer_id(body: bytes) -> str | None:
    """What the engine calls a whole answer; None when it does not say."""
    try:
        return _NAMED.decode(body).id
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None

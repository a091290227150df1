"""A whole answer on its way to the client: what it cost, and the model's name as the client knows it."""

from __future__ import annotations

import msgspec

from gateway.wire.splice import splice
from gateway.wire.usage import Usage, usage_of

__all__ = ["read_answer"]


class _Choice(msgspec.Struct):
    finish_reason: str | None = None


class _Answer(msgspec.Struct):
    model: str | None = None
    usage: dict[str, object] | None = None
    timings: dict[str, object] | None = None
    choices: list[_Choice] | None = None


_ANSWER = msgspec.json.Decoder(_Answer)


def read_answer(body: bytes, model_alias: str | None) -> tuple[bytes, Usage | None, str | None]:
    """The body with `model` shown as `model_alias` (None: as it is), its usage, and the first choice's finish_reason.

    A body that is not such an answer comes back as it is, with None for both.
    """
    try:
        answer = _ANSWER.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return body, None, None
    usage = usage_of({"usage": answer.usage, "timings": answer.timings})
    reason = answer.choices[0].finish_reason if answer.choices else None
    if model_alias is not None and answer.model not in (None, model_alias):
        body = splice(body, {"model": msgspec.json.encode(model_alias)})
    return body, usage, reason

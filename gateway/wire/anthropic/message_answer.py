"""What is read of a message, whole or an event of its stream."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from gateway.errors import StreamBroken

__all__ = ["Delta", "Event", "Message", "read_message"]

_T = TypeVar("_T")


class Delta(msgspec.Struct, gc=False):
    """A piece of a block, or what `message_delta` says."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class Message(msgspec.Struct):
    """A message; in `message_start` without content."""

    content: list[msgspec.Raw]
    stop_reason: str | None = None
    usage: Any = None
    error: Any = None


class Event(msgspec.Struct, gc=False):
    """One event of a stream."""

    type: str
    index: int = 0
    message: msgspec.Raw = msgspec.Raw(b"")
    content_block: msgspec.Raw = msgspec.Raw(b"")
    delta: Delta | None = None
    usage: Any = None


def read_message(decoder: msgspec.json.Decoder[_T], data: bytes | msgspec.Raw) -> _T:
    """Decode an answer, an event or a part of it. Raises StreamBroken for what is none."""
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        pass
    try:  # NaN and numbers past 64 bits, which engines written in Python send: none of those matters here
        return decoder.decode(json.dumps(_tamed(json.loads(bytes(data)))))
    except (msgspec.MsgspecError, ValueError, RecursionError, UnicodeError) as error:
        raise StreamBroken("the engine sent what is no message") from error


def _tamed(value: object) -> object:
    if isinstance(value, dict):
        return {key: _tamed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_tamed(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value

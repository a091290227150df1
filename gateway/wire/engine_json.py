"""Read what engines write: JSON of any quality that SDKs read."""

from __future__ import annotations

import json
import math
import re
from typing import TypeVar

import msgspec

from gateway.errors import StreamBroken

__all__ = ["UNREADABLE", "has_half", "is_utf8", "json_of", "read_engine"]

UNREADABLE = object()
"""What bytes mean that are no JSON."""
_T = TypeVar("_T")
# Half of a surrogate pair, which no UTF-8 can carry on: a high one without its low one, or a low one alone.
_HALF = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def json_of(data: bytes) -> object:
    """The value, or UNREADABLE."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        pass
    try:
        return _loose(data)
    except (ValueError, RecursionError):
        return UNREADABLE


def read_engine(decoder: msgspec.json.Decoder[_T], data: bytes | msgspec.Raw, what: str) -> _T:
    """Decode an answer, an event or a part of it. Raises StreamBroken, saying that it is no `what`.

    NaN and infinity are read as null: nothing that is asked for here may be either.
    """
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        pass
    try:
        return decoder.decode(json.dumps(_finite(_loose(bytes(data)))))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise StreamBroken(f"the engine sent what is no {what}") from error


def has_half(data: bytes) -> bool:
    """Whether half of a surrogate pair seems to stand in JSON."""
    return (b"\\ud" in data or b"\\uD" in data) and _HALF.search(data) is not None


def is_utf8(data: bytes) -> bool:
    """Whether clients can read it as text."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _loose(data: bytes) -> object:
    # NaN and numbers past 64 bits, which engines written in Python send and SDKs read. A character of which there is
    # half only is replaced.
    value: object = json.loads(_HALF.sub(rb"\\ufffd", data))
    return value


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""Read what an engine sends, JSON of any quality that SDKs read."""

from __future__ import annotations

import json
import re
from typing import TypeVar

import msgspec

from gateway.errors import StreamBroken

__all__ = ["UNREADABLE", "json_of", "read_as"]

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


def read_as(decoder: msgspec.json.Decoder[_T], data: bytes | msgspec.Raw, kind: type[_T]) -> _T:
    """The value as what the decoder makes, which is `kind`. Raises StreamBroken for what is none."""
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        pass
    try:
        return msgspec.convert(_loose(bytes(data)), kind)
    except (ValueError, RecursionError) as error:
        raise StreamBroken("the engine sent what is no answer") from error


def _loose(data: bytes) -> object:
    # NaN and numbers past 64 bits, which engines written in Python send and SDKs read. A character of which there is
    # half only is replaced.
    value: object = json.loads(_HALF.sub(rb"\\ufffd", data))
    return value

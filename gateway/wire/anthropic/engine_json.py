"""Read JSON that an engine wrote."""

from __future__ import annotations

import json
import math
from typing import TypeVar

import msgspec

from gateway.errors import StreamBroken

__all__ = ["read_engine"]

_T = TypeVar("_T")


def read_engine(decoder: msgspec.json.Decoder[_T], data: bytes | msgspec.Raw, what: str) -> _T:
    """Decode an answer, an event or a part of it. Raises StreamBroken, saying that it is no `what`."""
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        pass
    try:  # NaN, which engines written in Python send, and nothing here asks for
        return decoder.decode(json.dumps(_finite(json.loads(bytes(data)))))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise StreamBroken(f"the engine sent what is no {what}") from error


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

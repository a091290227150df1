"""Whether something is a JSON object, without reading what is in it."""

from __future__ import annotations

import msgspec

__all__ = ["is_object"]


class _AnyObject(msgspec.Struct, gc=False):
    """Reads past every member, so decoding only checks the syntax."""


_OBJECT = msgspec.json.Decoder(_AnyObject)


def is_object(data: bytes | str) -> bool:
    """Whether it is one whole JSON object, and nothing after it."""
    try:
        _OBJECT.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return False
    return True

"""Read one piece of a request, naming the place at fault when it can't be read."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.distinct import distinct_members
from gateway.wire.malformed import malformed

__all__ = ["NOTHING", "encode", "first_byte", "is_null", "read", "read_client", "read_list", "read_members"]

NOTHING = msgspec.Raw(b"")
"""An absent raw member; compare with `is`."""
_LIST: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_T = TypeVar("_T")

encode = msgspec.json.Encoder().encode


def read(decoder: msgspec.json.Decoder[_T], raw: msgspec.Raw, path: str) -> _T:
    """Decode one value of a request; `path` says where it stands. Raises MalformedRequest with `param`."""
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        told = malformed(bytes(raw), error)
        inner = told.param or ""
        param = f"{path}{inner}" if not inner or inner.startswith("[") else f"{path}.{inner}"
        raise MalformedRequest(f"{path}: {told.message}", param=param, code=told.code) from None


def read_list(raw: msgspec.Raw, path: str) -> list[msgspec.Raw]:
    """The items of an array, raw. Raises MalformedRequest with `param`."""
    return read(_LIST, raw, path)


def read_members(body: bytes) -> dict[str, msgspec.Raw]:
    """The top-level members of a request, raw; those that are null are left out. Raises MalformedRequest."""
    try:
        if not body.isascii():
            body.decode()  # members that nobody reads are not checked otherwise
        found = _MEMBERS.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise malformed(body, error) from None
    return {key: value for key, value in found.items() if not is_null(value)}


def read_client(body: bytes) -> dict[str, msgspec.Raw]:
    """The same for a body as the client sent it, in which no member may be given twice. Raises MalformedRequest."""
    found = read_members(body)
    distinct_members(body)
    return found


def is_null(raw: msgspec.Raw) -> bool:
    """Whether a raw member is absent or null."""
    return raw is NOTHING or first_byte(raw) == b"n"


def first_byte(raw: msgspec.Raw) -> bytes:
    """What tells the kind of a value: `{`, `[`, `"` or something else. Empty for an absent member."""
    return bytes(memoryview(raw)[:1])

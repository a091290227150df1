"""A body that can't be read, as an error that names the member at fault and never quotes the text."""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from typing import TypeVar

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.members import KEY, MAX_MEMBERS, NEXT

__all__ = ["decoded", "integer", "malformed"]

_Read = TypeVar("_Read")

_PIECE = 32 * 1024
"""Bytes checked at once: they stay in a core's own cache, and no memory is asked of the system for their text."""

_PATH = re.compile(r" - at `\$\.?([^`]*)`$")
_MISSING = re.compile(r"missing required field `([^`]+)`")
_BYTE = re.compile(r" ?\(byte (\d+)\)$")
# Half of a surrogate pair: a high one without its low one, or a low one alone.
_HALF = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def decoded(decoder: msgspec.json.Decoder[_Read], body: bytes, inside: str = "") -> _Read:
    """What `decoder` reads in `body`. Raises MalformedRequest with `param` naming the member at fault.

    inside: the member of which `body` is the value, if it is not the whole.
    """
    try:
        if not body.isascii():
            _check_utf8(body)  # members that are skipped are not checked otherwise
        return decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise malformed(body, error, inside) from None


def _check_utf8(body: bytes) -> None:
    """Raise UnicodeDecodeError for what is not UTF-8."""
    decode = getincrementaldecoder("utf-8")().decode
    try:
        for at in range(0, len(body), _PIECE):
            decode(body[at : at + _PIECE], at + _PIECE >= len(body))
    except UnicodeDecodeError:
        body.decode()  # as a whole it tells the place


def integer(field: str, value: float | None, lowest: int, highest: int) -> int | None:
    """The whole number that a member says (`1.0` is one); None when it is unsaid. Raises MalformedRequest else."""
    if value is None:
        return None
    if value != value or not lowest <= value <= highest or value != int(value):
        raise MalformedRequest(f"{field} must be an integer from {lowest} to {highest}", param=field)
    return int(value)


def malformed(body: bytes, error: Exception, inside: str = "") -> MalformedRequest:
    """The error to raise for `error`, which a decoder raised for `body`; `inside` as for `decoded`."""
    if isinstance(error, RecursionError):
        return MalformedRequest("the body is nested too deeply", param=inside or None)
    if isinstance(error, UnicodeDecodeError):
        return MalformedRequest("the body is not valid UTF-8", param=inside or _member_at(body, error.start))
    text = str(error)
    if isinstance(error, msgspec.ValidationError):
        at = _PATH.search(text)
        path = at[1] if at else ""
        if inside:
            path = inside + (path if path.startswith("[") or not path else f".{path}")
        missing = _MISSING.search(text)
        if missing:
            path = f"{path}.{missing[1]}" if path else missing[1]
            return MalformedRequest(f"{path} is required", param=path, code="missing_required_parameter")
        what = _PATH.sub("", text).replace("`", "")
        return MalformedRequest(f"{path or 'the body'}: {what[:1].lower()}{what[1:]}", param=path or None)
    half = _HALF.search(body)
    if half is not None and ("surrogate" in text or "truncated" in text or "hex escape" in text):
        param = inside or _member_at(body, half.start())
        return MalformedRequest(f"{param or 'the body'}: half of a surrogate pair is no character", param=param)
    at = _BYTE.search(text)
    if at is None:
        return MalformedRequest("the body is not valid JSON: it ends too early", code="invalid_json")
    offset = int(at[1])
    what = _BYTE.sub("", text).removeprefix("JSON is malformed: ")
    param = inside or _member_at(body, offset)
    where = f"in {inside}" if inside else f"at byte {offset}"
    return MalformedRequest(f"the body is not valid JSON: {what} {where}", param=param, code="invalid_json")


def _member_at(body: bytes, offset: int) -> str | None:
    # The top-level key whose value holds `offset`. As Latin-1 every byte is one character.
    text = body.decode("latin-1")
    decoder = json.JSONDecoder(parse_int=len, parse_float=len, strict=False)
    at = len(text) - len(text.lstrip(" \t\r\n")) + 1
    for _ in range(MAX_MEMBERS):
        key = KEY.match(body, at)
        if key is None or key.start() > offset:
            return None
        try:
            end = decoder.raw_decode(text, key.end())[1]
        except (ValueError, RecursionError):
            end = len(body)
        if key.end() <= offset < end:
            return key[1].decode("utf-8", "replace")[:64]
        after = NEXT.match(body, end)
        if after is None:
            return None
        at = after.end()
    return None

"""Find the members of a JSON object: where each lies in the text, without a copy of it or a change to it."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.engine_json import json_of

__all__ = ["KEY", "MAX_MEMBERS", "NEXT", "Member", "engine_members", "members", "most_keys"]

MAX_MEMBERS: Final = 1000
"""Top-level members of a body; APIs know a few dozen, and each more costs a step in Python."""
_SHORT = 32 * 1024
"""Bytes of values, other than the long ones, whose ends are looked for in Python; a bracket takes 0.3 µs."""
_PIECE = 64 * 1024
"""Bytes compared at once; a copy of a megabyte is new memory, which costs more than to compare it."""
_DENSE = 50_000
"""Keys from which a mapping of a body's members might take tens of milliseconds to make."""

_SPACE = re.compile(rb"[ \t\n\r]*+")
KEY = re.compile(rb'[ \t\n\r]*+"([^"\\]*+(?:\\.[^"\\]*+)*+)"[ \t\n\r]*+:[ \t\n\r]*+', re.DOTALL)
NEXT = re.compile(rb"[ \t\n\r]*+([,}])[ \t\n\r]*+")
# The values of valid JSON: a string, a number or a word, and up to the next bracket outside of strings.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_PLAIN = re.compile(rb"[^,\]} \t\n\r]++")
_BRACKET = re.compile(rb'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{}]*+)*+([\[{\]}])', re.DOTALL)
_RAW_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Long(msgspec.Struct, gc=False):
    """The members that are long, by the names that APIs give them; of all others only the syntax is checked."""

    messages: msgspec.Raw = msgspec.Raw()
    prompt: msgspec.Raw = msgspec.Raw()
    input: msgspec.Raw = msgspec.Raw()
    documents: msgspec.Raw = msgspec.Raw()
    tools: msgspec.Raw = msgspec.Raw()
    functions: msgspec.Raw = msgspec.Raw()


_LONG = msgspec.json.Decoder(_Long)


class _AnyObject(msgspec.Struct):
    """Reads past every member, so decoding only checks the syntax."""


_SYNTAX = msgspec.json.Decoder(_AnyObject)


class Member(NamedTuple):
    """Where one member of an object lies: byte offsets of its key's opening quote and of its value."""

    key: str
    key_start: int
    value_start: int
    value_end: int


class _OffTrackError(Exception):
    """The quick walk met a key whose value is not the one that counts (a duplicate)."""


def members(body: bytes) -> list[Member]:
    """All members of the JSON object in `body`, in order, duplicates included.

    Raises MalformedRequest when `body` is not one JSON object, or has more than MAX_MEMBERS.
    """
    try:
        try:
            long = _LONG.decode(body)
            values = {name: raw for name in long.__struct_fields__ if (raw := memoryview(getattr(long, name)))}
            return _walk(body, values, _SHORT)
        except _OffTrackError:
            return _unusual(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise MalformedRequest("the body is not a JSON object") from error


def engine_members(body: bytes) -> list[Member]:
    """The same of what engines write: NaN and half a character are values, too, as they are to clients."""
    try:
        return members(body)
    except MalformedRequest:
        if not isinstance(json_of(body), dict):
            raise
    try:
        return _scan(body)
    except (_OffTrackError, UnicodeError, msgspec.MsgspecError) as error:
        raise MalformedRequest("the body is not a JSON object") from error


def _unusual(body: bytes) -> list[Member]:
    """The same where something else is long, or a key is there twice."""
    if body.count(b":") > _DENSE and most_keys(body) > _DENSE:
        _SYNTAX.decode(body)
        return _scan(body)
    try:
        return _walk(body, {name: memoryview(raw) for name, raw in _RAW_OBJECT.decode(body).items()}, 0)
    except _OffTrackError:
        return _scan(body)


def most_keys(body: bytes) -> int:
    """How many keys a body has at most, at any depth: its colons, but for those after a quote that is escaped.

    JSON quoted in JSON is full of these. (Where the backslash is itself escaped, the quote may be a key's end.)
    """
    return body.count(b":") - body.count(b'\\":') + body.count(b'\\\\":')


def _open(body: bytes) -> int:
    start = _end(_SPACE, body, 0) + 1  # past the brace
    return _end(_SPACE, body, start)


def _end(pattern: re.Pattern[bytes], body: bytes, at: int, stop: int = sys.maxsize) -> int:
    found = pattern.match(body, at, stop)
    if found is None:
        raise _OffTrackError
    return found.end()


def _walk(body: bytes, values: Mapping[str, memoryview], most: int) -> list[Member]:
    # The decoder has already found where these values end: its raw bytes are as long as the value is, so a long
    # `messages` is stepped over at once. No complete JSON value is a proper prefix of another one followed by a
    # delimiter, so a match that is followed by `,` or `}` is the value itself. The ends of other values are looked for
    # in `most` bytes, all in all.
    found: list[Member] = []
    at = _open(body)
    if body[at : at + 1] == b"}":
        return found
    while True:
        key = KEY.match(body, at)
        if key is None:
            raise _OffTrackError
        name = _key(key)
        start = key.end()
        raw = values.get(name)
        if raw is None:
            end = _value_end(body, start, start + most)
            most -= end - start
        elif _holds(body, raw, start):
            end = start + len(raw)
        else:
            raise _OffTrackError
        _add(found, Member(name, at, start, end))
        after = NEXT.match(body, end)
        if after is None:
            raise _OffTrackError
        if after[1] == b"}":
            return found
        at = after.end()


def _holds(body: bytes, raw: memoryview, start: int) -> bool:
    """Whether `raw` is what the body has from there on."""
    return all(body.startswith(bytes(raw[at : at + _PIECE]), start + at) for at in range(0, len(raw), _PIECE))


def _scan(body: bytes) -> list[Member]:
    # Duplicate keys are rare: then every value's end is looked for. The body is known to be valid.
    found: list[Member] = []
    at = _open(body)
    while (key := KEY.match(body, at)) is not None:
        end = _value_end(body, key.end())
        _add(found, Member(_key(key), at, key.end(), end))
        after = NEXT.match(body, end)
        if after is None or after[1] == b"}":
            break
        at = after.end()
    return found


def _value_end(body: bytes, start: int, stop: int = sys.maxsize) -> int:
    # A value that goes on beyond `stop` is off track; a number that is cut there is followed by no delimiter.
    if body.startswith(b'"', start):
        return _end(_STRING, body, start, stop)
    if not body.startswith((b"{", b"["), start):
        return _end(_PLAIN, body, start, stop)
    depth, at = 0, start
    while True:
        bracket = _BRACKET.match(body, at, stop)
        if bracket is None:
            raise _OffTrackError
        depth += 1 if bracket[1] in b"{[" else -1
        at = bracket.end()
        if not depth:
            return at


def _add(found: list[Member], member: Member) -> None:
    if len(found) >= MAX_MEMBERS:
        raise MalformedRequest(f"the body has more than {MAX_MEMBERS} members", code="too_many_members")
    found.append(member)


def _key(match: re.Match[bytes]) -> str:
    raw = match[1]
    if b"\\" in raw:
        return msgspec.json.decode(b'"' + raw + b'"', type=str)
    return raw.decode()

"""Change a few top-level values of a JSON object in place; every other byte stays as the client sent it.

A prefix cache keys on the exact prompt, so parsing and writing a body anew (other spacing, key order, number text or
escapes) would cost a whole prefill. Only the spans of the named members are touched here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from gateway.errors import MalformedRequest

__all__ = ["MAX_MEMBERS", "Member", "members", "most_keys", "pieces", "splice", "splice_path"]

MAX_MEMBERS: Final = 1000
"""Top-level members of a body; APIs know a few dozen, and each more costs a step in Python."""
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
        if body.count(b":") > _DENSE and most_keys(body) > _DENSE:
            _SYNTAX.decode(body)
            return _scan(body)
        return _walk(body, _RAW_OBJECT.decode(body))
    except _OffTrackError:
        return _scan(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise MalformedRequest("the body is not a JSON object") from error


def most_keys(body: bytes) -> int:
    """How many keys a body has at most, at any depth: its colons, but for those after a quote that is escaped.

    JSON quoted in JSON is full of these. (Where the backslash is itself escaped, the quote may be a key's end.)
    """
    return body.count(b":") - body.count(b'\\":') + body.count(b'\\\\":')


def _open(body: bytes) -> int:
    start = _end(_SPACE, body, 0) + 1  # past the brace
    return _end(_SPACE, body, start)


def _end(pattern: re.Pattern[bytes], body: bytes, at: int) -> int:
    found = pattern.match(body, at)
    if found is None:
        raise _OffTrackError
    return found.end()


def _walk(body: bytes, values: Mapping[str, msgspec.Raw]) -> list[Member]:
    # The decoder has already found where every value ends: its raw bytes are as long as the value is, so a long
    # `messages` is stepped over at once. No complete JSON value is a proper prefix of another one followed by a
    # delimiter, so a match that is followed by `,` or `}` is the value itself.
    found: list[Member] = []
    at = _open(body)
    if body[at : at + 1] == b"}":
        return found
    while True:
        key = KEY.match(body, at)
        if key is None:
            raise _OffTrackError
        name = _key(key)
        raw = bytes(values[name])
        start = key.end()
        if not body.startswith(raw, start):
            raise _OffTrackError
        end = start + len(raw)
        _add(found, Member(name, at, start, end))
        after = NEXT.match(body, end)
        if after is None:
            raise _OffTrackError
        if after[1] == b"}":
            return found
        at = after.end()


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


def _value_end(body: bytes, start: int) -> int:
    if body.startswith(b'"', start):
        return _end(_STRING, body, start)
    if not body.startswith((b"{", b"["), start):
        return _end(_PLAIN, body, start)
    depth, at = 0, start
    while True:
        bracket = _BRACKET.match(body, at)
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


def splice(body: bytes, edits: Mapping[str, bytes | None], found: Sequence[Member] | None = None) -> bytes:
    """Set (raw JSON value) or remove (None) top-level members of the object in `body`.

    A key that is absent is added at the end. Of duplicate keys the last one counts: it is set, the others go. `found`:
    the body's members where they are known. Raises MalformedRequest when `body` is not one JSON object.
    """
    return b"".join(pieces(body, edits, found)) if edits else body


def pieces(
    body: bytes, edits: Mapping[str, bytes | None], found: Sequence[Member] | None = None
) -> tuple[bytes | memoryview, ...]:
    """`splice` without a copy: what to send one after another, the body's own parts as views of it."""
    if not edits:
        return (body,)
    if found is None:
        found = members(body)
    last = {member.key: i for i, member in enumerate(found)}
    cuts: list[tuple[int, int, bytes]] = []  # (from, to, instead), in order
    kept_end = -1
    inserts = b",".join(
        msgspec.json.encode(key) + b":" + value for key, value in edits.items() if value is not None and key not in last
    )
    for i, member in enumerate(found):
        if member.key not in edits:
            kept_end = member.value_end
            continue
        value = edits[member.key]
        if value is not None and last[member.key] == i:
            cuts.append((member.value_start, member.value_end, value))
            kept_end = member.value_end
        elif kept_end >= 0:  # takes the comma before it along
            cuts.append((found[i - 1].value_end, member.value_end, b""))
        else:  # nothing kept before it: takes the comma after it along
            end = found[i + 1].key_start if i + 1 < len(found) else member.value_end
            cuts.append((member.key_start, end, b""))
    if inserts:
        if kept_end >= 0:
            cuts.append((kept_end, kept_end, b"," + inserts))
        else:
            start = body.index(b"{") + 1
            cuts.append((start, start, inserts))
        # At one place: the value that ends there, then what is added, then what is taken out after it.
        cuts.sort(key=lambda cut: (cut[1] if cut[2] else cut[0], not cut[2]))
    return _apply(body, cuts)


def _apply(body: bytes, cuts: Sequence[tuple[int, int, bytes]]) -> tuple[bytes | memoryview, ...]:
    view = memoryview(body)
    parts: list[bytes | memoryview] = []
    at = 0
    for start, end, instead in cuts:
        parts += (view[at:start], instead)
        at = end
    parts.append(view[at:])
    return tuple(part for part in parts if len(part))


def splice_path(body: bytes, path: Sequence[str], value: bytes | None) -> bytes:
    """Set (raw JSON value) or remove (None) one nested member, e.g. `("stream_options", "include_usage")`.

    Objects that are missing (or null) on the way are made, not when removing.
    Raises MalformedRequest when something on the way is not an object.
    """
    key, rest = path[0], path[1:]
    if not rest:
        return splice(body, {key: value})
    inner = b"null"
    for member in members(body):
        if member.key == key:
            inner = body[member.value_start : member.value_end]
    if inner == b"null":
        if value is None:
            return body
        inner = b"{}"
    if not inner.startswith(b"{"):
        raise MalformedRequest(f"{key} is not an object", param=key)
    return splice(body, {key: splice_path(inner, rest, value)})

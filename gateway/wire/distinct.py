"""No key twice in a request, at any depth: which of the two counts is each reader's own choice.

An engine could read another request than the one that was decided upon. Long texts are what bodies are made of, so
nothing here reads them: the decoder steps over them, and all objects of a level are looked at together. 1 MB of
messages of 800 bytes takes about 1 ms, 100 kB of an agent's turns 0.2 ms; a parse that tells of keys twice, four times
that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.members import Member, members

__all__ = ["Told", "distinct_members"]

_NAMED: Final = 64
"""Characters of a path that an error message names."""
_LEVELS: Final = 8
"""Levels that are looked at one by one; what lies deeper is parsed in one go."""
_SMALL: Final = 16 * 1024
"""Bytes of values that are put together with others of their level, to be read at once."""
_PIECE: Final = 64 * 1024
"""Bytes copied at once: more is new memory, which costs more than what is done with it."""

_OBJECTS = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_CONTAINERS: Final = b"[{"
_ESCAPED_COLON = re.compile(rb"\\u003[aA]")
_ARRAY: Final = ord("[")


class Told(NamedTuple):
    """What is known of a member's value: how many members its objects have at least, all together, and the colons that
    the keys and texts of those have, read."""

    name: str
    members: int
    colons: int


def distinct_members(body: bytes, told: Told | None = None) -> tuple[Member, ...]:
    """All top-level members of the JSON object that a client sent, in order; `told` spares a second look.

    Raises MalformedRequest for a key that its object has twice, wherever that stands (`messages[3].content`), and for
    what is no JSON object. Escapes don't make keys differ.
    """
    found = members(body)
    if len({member.key for member in found}) < len(found) or _may_repeat(body, found, told):
        _refuse_repeated(body)
    return tuple(found)


def _is_all(body: bytes, member: Member, told: Told) -> bool:
    """Whether the value has no other members than those told of.

    Each member has a colon after its key; all others stand in texts. An escaped one would make up for another.
    """
    start, end = member.value_start, member.value_end
    if body.count(b":", start, end) != told.members + told.colons:
        return False
    return body.find(b"\\", start, end) < 0 or not _ESCAPED_COLON.search(body, start, end)


def _may_repeat(body: bytes, found: Sequence[Member], told: Told | None) -> bool:
    """Whether an object below the top may have a key twice; False is certain."""
    if told is not None:
        found = [each for each in found if each.key != told.name or not _is_all(body, each, told)]
    view = memoryview(body)
    level = [view[at:end] for _, _, at, end in found if body[at] in _CONTAINERS]
    for _ in range(_LEVELS):
        if not level:
            return False
        small = [bytes(value) for value in level if len(value) <= _SMALL]
        texts = [value for value in level if len(value) > _SMALL and _has(value, b"{")]
        insides = [value[1:-1] if value[0] == _ARRAY else value for value in small if b"{" in value]
        if insides:
            texts.append(memoryview(b"[%b]" % b",".join(insides)))
        level = []
        for text in texts:
            if text[0] == _ARRAY:
                try:
                    read = _OBJECTS.decode(text)
                except msgspec.ValidationError:  # an array of more than objects
                    level += _containers(map(bytes, _ITEMS.decode(text)))
                    continue
            else:
                read = [_OBJECT.decode(text)]
            values = list(map(bytes, chain.from_iterable(map(dict.values, read))))
            if _left_over(text, read, values):
                return True
            level += _containers(values)
    return bool(level)


def _containers(values: Iterable[bytes]) -> list[memoryview]:
    return [memoryview(value) for value in values if value[0] in _CONTAINERS]


def _left_over(text: memoryview, read: list[dict[str, msgspec.Raw]], values: list[bytes]) -> bool:
    """Whether the text of these objects may hold more than what was read of them: a member that was overwritten."""
    keys = "".join(chain.from_iterable(read))
    # Written without a space, an object of n members has 4n + 1 bytes beside their keys and values.
    frame = 4 * len(values) + (2 * len(read) + 1 if text[0] == _ARRAY else 1)
    if len(text) == frame + len(keys) + sum(map(len, values)):
        return False
    # Whatever the spacing: each member has a colon after its key, all others stand inside of values. (One in a key
    # may be escaped there, and would make up for another.)
    if ":" in keys:
        return True
    return _count(text, b":") > len(values) + sum([value.count(b":") for value in values])


def _count(text: memoryview, byte: bytes) -> int:
    return sum(bytes(text[at : at + _PIECE]).count(byte) for at in range(0, len(text), _PIECE))


def _has(text: memoryview, byte: bytes) -> bool:
    return any(byte in bytes(text[at : at + _PIECE]) for at in range(0, len(text), _PIECE))


def _refuse_repeated(body: bytes) -> None:
    """Raise MalformedRequest if a key is there twice after all."""
    try:
        _told(body, _distinct)
    except _RepeatedError as repeated:
        key = repeated.key
    else:
        return
    path = _path(_told(body, _Pairs), "") or key
    name = path[:_NAMED]
    raise MalformedRequest(f"the member {name!r} is given more than once", param=name, code="duplicate_member")


class _RepeatedError(Exception):
    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key


class _Pairs(list[tuple[str, Any]]):
    """An object with all of its members."""


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise _RepeatedError(_repeated(pairs) or "")


def _repeated(pairs: list[tuple[str, Any]]) -> str | None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    return None


def _told(body: bytes, make: Callable[[list[tuple[str, Any]]], object]) -> object:
    # Numbers are of no interest, and long ones are slow to read.
    decoder = json.JSONDecoder(object_pairs_hook=make, parse_int=len, parse_float=len, strict=False)
    try:
        return decoder.decode(body.decode())
    except (ValueError, RecursionError) as error:
        raise MalformedRequest("the body is nested too deeply, or is not valid JSON") from error


def _path(value: object, at: str) -> str | None:
    """Where the first key is that its object has twice."""
    if isinstance(value, _Pairs):
        repeated = _repeated(value)
        if repeated is not None:
            return f"{at}.{repeated}" if at else repeated
        named = ((f"{at}.{key}" if at else key, item) for key, item in value)
    elif isinstance(value, list):
        named = ((f"{at}[{index}]", item) for index, item in enumerate(value))
    else:
        return None
    return next((path for where, item in named if (path := _path(item, where)) is not None), None)

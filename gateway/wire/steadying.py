"""Take out of a prompt's head what changes at every turn, where an operator asks for that; all other bytes stay.

A line with the time or a checksum at the head of a prompt makes everything after it new to every prefix cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from gateway.core.steadying import Rule
from gateway.wire.raw_members import NOTHING, encode, first_byte
from gateway.wire.splice import splice

__all__ = ["steadied"]


class _Head(msgspec.Struct):
    system: msgspec.Raw = NOTHING
    instructions: msgspec.Raw = NOTHING
    messages: msgspec.Raw = NOTHING


class _Message(msgspec.Struct):
    role: Any = None
    content: msgspec.Raw = NOTHING


class _Part(msgspec.Struct):
    text: msgspec.Raw = NOTHING


_HEAD = msgspec.json.Decoder(_Head)
_LIST: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])
_MESSAGE = msgspec.json.Decoder(_Message)
_PART = msgspec.json.Decoder(_Part)
_STRING = msgspec.json.Decoder(str)


def steadied(body: bytes, rules: Sequence[Rule]) -> bytes:
    """The body with the rules applied to its system prompt; the same object where nothing matched.

    That is `system` of a Messages body, `instructions` of a Responses body, and the messages of the system's or a
    developer's with which a chat begins. A part that nothing is left of goes. What can't be read is left as it is:
    whoever reads it next says what is wrong with it.
    """
    try:
        head = _HEAD.decode(body)
        edits: dict[str, bytes | None] = {}
        for name, raw in (("system", head.system), ("instructions", head.instructions)):
            if raw is not NOTHING and (new := _content(bytes(raw), rules)) != bytes(raw):
                edits[name] = new
        if head.messages is not NOTHING and (new := _messages(bytes(head.messages), rules)) != bytes(head.messages):
            edits["messages"] = new
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return body
    return splice(body, edits) if edits else body


def _messages(raw: bytes, rules: Sequence[Rule]) -> bytes:
    out, done = [], 0
    for start, end in _items(raw):
        message = _MESSAGE.decode(raw[start:end])
        if message.role not in ("system", "developer"):
            break
        content = bytes(message.content)
        at = raw.find(content, start, end) if content else -1
        if at >= 0:
            out += [raw[done:at], _content(content, rules)]
            done = at + len(content)
    return b"".join([*out, raw[done:]])


def _content(raw: bytes, rules: Sequence[Rule]) -> bytes:
    """A text, or a list of parts."""
    if first_byte(msgspec.Raw(raw)) == b'"':
        return _text(raw, rules)
    if first_byte(msgspec.Raw(raw)) != b"[":
        return raw
    out, done = [], 0
    spans = list(_items(raw))
    for index, (start, end) in enumerate(spans):
        text = bytes(_PART.decode(raw[start:end]).text) if raw[start : start + 1] == b"{" else b""
        new = _text(text, rules) if text[:1] == b'"' else text
        if new == text:
            continue
        if new == b'""' and index + 1 < len(spans):  # an empty part is refused by some
            out.append(raw[done:start])
            done = spans[index + 1][0]
        else:
            at = raw.find(text, start, end)
            out += [raw[done:at], new]
            done = at + len(text)
    return b"".join([*out, raw[done:]])


def _text(raw: bytes, rules: Sequence[Rule]) -> bytes:
    old = text = _STRING.decode(raw)
    for pattern, put in rules:
        text = pattern.sub(put, text)
    return raw if text == old else encode(text)


def _items(raw: bytes) -> Iterator[tuple[int, int]]:
    """Where the items of an array lie in it."""
    at = raw.find(b"[") + 1
    for item in _LIST.decode(raw):
        start = raw.find(bytes(item), at)
        at = start + len(bytes(item))
        yield start, at

"""Change a few top-level values of a JSON object in place; every other byte stays as the client sent it.

A prefix cache keys on the exact prompt, so parsing and writing a body anew (other spacing, key order, number text or
escapes) would cost a whole prefill. Only the spans of the named members are touched here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.members import Member, engine_members

__all__ = ["pieces", "splice", "splice_path"]


def splice(body: bytes, edits: Mapping[str, bytes | None], found: Sequence[Member] | None = None) -> bytes:
    """Set (raw JSON value) or remove (None) top-level members of the object in `body`.

    A key that is absent is added at the end. Of duplicate keys (an engine's answer may have some; a request is refused
    for them) the last one is set, the others go. `found`: the body's members where they are known; else those
    of `engine_members`. Raises
    MalformedRequest when `body` is not one JSON object.
    """
    return b"".join(pieces(body, edits, found)) if edits else body


def pieces(
    body: bytes, edits: Mapping[str, bytes | None], found: Sequence[Member] | None = None
) -> tuple[bytes | memoryview, ...]:
    """`splice` without a copy: what to send one after another, the body's own parts as views of it."""
    if not edits:
        return (body,)
    if found is None:
        found = engine_members(body)
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
    for member in engine_members(body):
        if member.key == key:
            inner = body[member.value_start : member.value_end]
    if inner == b"null":
        if value is None:
            return body
        inner = b"{}"
    if not inner.startswith(b"{"):
        raise MalformedRequest(f"{key} is not an object", param=key)
    return splice(body, {key: splice_path(inner, rest, value)})

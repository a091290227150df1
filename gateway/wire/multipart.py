"""Find the parts of a form, and change the value of one: a file in it is neither copied nor touched.

Readers of forms differ in what they forgive. What two of them could read differently (text before the first boundary
or after the last, blanks behind one, lone line feeds, a name twice) is refused, so that no engine sees another `model`
than the one that was decided upon.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gateway.errors import MalformedRequest
from gateway.wire.part_header import parameters, part_header

__all__ = ["Form", "Part", "form", "with_fields"]

MAX_PARTS: Final = 256
"""Parts of one form; APIs know a dozen names, and OpenAI's takes 16 pictures."""
HEADER_BYTES: Final = 8 * 1024
"""Bytes of one part's header."""
FIELD_BYTES: Final = 1024 * 1024
"""Bytes of one part that is no file."""
_LIKENESSES = 10_000
"""How often the text of the boundary may come inside of one part; a random one comes never."""

_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]")
"""RFC 2046, section 5.1.1."""
_YES = frozenset({"true", "1", "yes", "on", "t", "y"})
_ENDS_A_LINE = re.compile(rb"[ \t]*+(?:[\r\n]|--|\Z)")


@dataclass(frozen=True, slots=True)
class Part:
    """One part. Byte offsets in the body: of its boundary's dashes, of its value, and of the value's end.

    text: the value of a field; None for a file. filename: as it was written.
    """

    name: str
    opened: int
    start: int
    end: int
    text: str | None = field(default=None, repr=False)
    filename: str | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """Bytes of the value."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Form:
    """The parts of a form in order."""

    boundary: bytes
    parts: tuple[Part, ...]

    @property
    def files(self) -> tuple[Part, ...]:
        """The parts that are files."""
        return tuple(part for part in self.parts if part.text is None)

    def part(self, name: str) -> Part | None:
        """The part of that name. Raises MalformedRequest when there are two."""
        found = [part for part in self.parts if part.name == name]
        if len(found) > 1:
            raise MalformedRequest(f"{name} is given more than once", param=name, code="duplicate_member")
        return found[0] if found else None

    def value(self, name: str) -> str | None:
        """The text of the field of that name. Raises MalformedRequest when there are two, or it is a file."""
        part = self.part(name)
        if part is not None and part.text is None:
            raise MalformedRequest(f"{name} must not be a file", param=name)
        return None if part is None else part.text

    def yes(self, name: str) -> bool:
        """Whether the field of that name says yes, in any of the words that engines take for it (pydantic's)."""
        return (self.value(name) or "").strip().lower() in _YES


def form(body: bytes, content_type: str) -> Form:
    """Find the parts of a `multipart/form-data` body. Raises MalformedRequest for what is no such body."""
    boundary = _boundary(content_type)
    dashed = b"--" + boundary
    opened = 2 if body.startswith(b"\r\n") else 0
    if not body.startswith(dashed, opened):
        raise _invalid("the form does not begin with its boundary")
    parts: list[Part] = []
    while True:
        at = opened + len(dashed)
        if body.startswith(b"--", at):
            if body[at + 2 :].strip(b"\r\n"):
                raise _invalid("there is something after the form's last boundary")
            return Form(boundary, tuple(parts))
        if not body.startswith(b"\r\n", at):
            raise _invalid("the form does not begin with its boundary")
        if len(parts) == MAX_PARTS:
            raise _invalid(f"the form has more than {MAX_PARTS} parts", "too_many_members")
        part = _part(body, dashed, opened, at + 2)
        parts.append(part)
        opened = part.end + 2


def with_fields(body: bytes, found: Form, edits: Mapping[str, str | None]) -> list[bytes | memoryview]:
    """Set (text) or remove (None) fields; what to send one after another, the body's own parts as views of it.

    A field that is absent is put in front. Every other byte stays. Raises MalformedRequest when a field is there twice,
    or a value would read as the form's boundary.
    """
    dashed = b"--" + found.boundary
    cuts: list[tuple[int, int, bytes]] = []
    front = b""
    for name, text in edits.items():
        part = found.part(name)
        value = (text or "").encode()
        if any(line.startswith(dashed) for line in value.splitlines()):
            raise _invalid("the form's boundary can't be told from a value of it")
        if part is not None and text is None:
            cuts.append((part.opened, part.end + 2, b""))
        elif part is not None:
            cuts.append((part.start, part.end, value))
        elif text is not None:
            front += dashed + f'\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + value + b"\r\n"
    view = memoryview(body)
    pieces: list[bytes | memoryview] = [front]
    at = 0
    for start, end, instead in sorted(cuts):
        pieces += (view[at:start], instead)
        at = end
    return [piece for piece in (*pieces, view[at:]) if len(piece)]


def _boundary(content_type: str) -> bytes:
    kind, _, rest = content_type.partition(";")
    if kind.strip().lower() != "multipart/form-data":
        raise _invalid("the body must be multipart/form-data")
    boundary = parameters(";" + rest).get("boundary", "")
    if _BOUNDARY.fullmatch(boundary) is None:
        raise _invalid("the content type names no valid boundary")
    return boundary.encode()


def _part(body: bytes, dashed: bytes, opened: int, header: int) -> Part:
    stop = body.find(b"\r\n\r\n", header, header + HEADER_BYTES)
    if stop < 0:
        raise _invalid(f"a part of the form has no end of its header within {HEADER_BYTES} bytes")
    name, filename = part_header(body[header:stop])
    start = stop + 4
    if body.startswith(dashed, start):  # an empty value, or a part without one
        raise _invalid("a part of the form has no value", param=name)
    end = _value_end(body, dashed, start)
    if filename is not None:
        return Part(name, opened, start, end, None, filename)
    if end - start > FIELD_BYTES:
        raise _invalid(f"{name} has more than {FIELD_BYTES} bytes and is no file", param=name)
    try:
        return Part(name, opened, start, end, body[start:end].decode())
    except UnicodeDecodeError:
        raise _invalid(f"{name} is not valid UTF-8", param=name) from None


def _value_end(body: bytes, dashed: bytes, at: int) -> int:
    for _ in range(_LIKENESSES):
        at = body.find(dashed, at)
        if at < 0:
            raise _invalid("the form ends without its closing boundary")
        after = at + len(dashed)
        if body.startswith(b"\r\n", at - 2) and body.startswith((b"\r\n", b"--"), after):
            return at - 2
        if body[at - 1] in b"\r\n" and _ENDS_A_LINE.match(body, after):
            raise _invalid("the form has a boundary that is not between CRLFs")
        at = after  # inside of a line, or followed by more: what a file may hold
    raise _invalid("the form's boundary is all over one of its parts")


def _invalid(message: str, code: str = "invalid_form", param: str | None = None) -> MalformedRequest:
    return MalformedRequest(message, code=code, param=param)

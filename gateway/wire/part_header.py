"""The header of one part of a form: its name, and whether a file is in it. RFC 7578.

Names of parts are plain: a backslash, a percent escape or `name*` (RFC 2231, which RFC 7578 rules out) is undone by
some readers and not by others, and a quote behind a backslash ends a value for some.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gateway.errors import MalformedRequest

__all__ = ["PartHeader", "parameters", "part_header"]

_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_PARAMETER = re.compile(
    rf'[ \t]*+;[ \t]*+(?:({_TOKEN})[ \t]*+=[ \t]*+(?:"([^"\\]*+(?:\\.[^"\\]*+)*+)"|([^\s;"]*+)))?', re.DOTALL
)
_FIELD_NAME = re.compile(_TOKEN.encode())
_ODD_QUOTE = re.compile(r'\\(?:"|\Z)')
_ODD_NAME = re.compile(r"\\|%[0-9A-Fa-f]{2}")
_AS_THEY_ARE = frozenset({"", "7bit", "8bit", "binary"})


class PartHeader(NamedTuple):
    """filename: as it was written, None for a part that is no file."""

    name: str
    filename: str | None


def part_header(block: bytes) -> PartHeader:
    """Read a part's header lines, without the empty one after them.

    Raises MalformedRequest where readers could differ: two names, folded lines, fields whose name is no token, parts in
    another encoding.
    """
    said: dict[bytes, str] = {}
    for line in block.split(b"\r\n"):
        field, colon, value = line.partition(b":")
        if not colon or not _FIELD_NAME.fullmatch(field) or any(odd in value for odd in (b"\n", b"\r", b"\0")):
            raise MalformedRequest("a part of the form has a header that can't be read")
        name = field.lower()
        if name in said:
            raise MalformedRequest("a part of the form has a header twice")
        said[name] = value.decode("utf-8", "replace").strip()
    if said.get(b"content-transfer-encoding", "").lower() not in _AS_THEY_ARE:
        raise MalformedRequest("a part of the form has a Content-Transfer-Encoding; send its bytes as they are")
    kind, _, rest = said.get(b"content-disposition", "").partition(";")
    if kind.strip().lower() != "form-data":
        raise MalformedRequest("a part of the form has no Content-Disposition of form-data")
    found = parameters(";" + rest)
    called = found.get("name")
    if called is None or "name*" in found:
        raise MalformedRequest("a part of the form has no name")
    if _ODD_NAME.search(called):
        raise MalformedRequest("a part of the form has a name with escapes in it")
    filename = found.get("filename")
    return PartHeader(called, found.get("filename*") if filename is None else filename)


def parameters(text: str) -> dict[str, str]:
    """What `; a=b; c="d"` says, names in lower case. as they are written. Raises MalformedRequest for what is not of
    that form, or twice, and for a quote behind a backslash.
    """
    found: dict[str, str] = {}
    text = text.strip()
    at = 0
    while at < len(text):
        match = _PARAMETER.match(text, at)
        if match is None:
            raise MalformedRequest("the form has header parameters that can't be read")
        at = match.end()
        name = (match[1] or "").lower()
        if name in found:
            raise MalformedRequest("the form has a header parameter twice")
        if name:  # else a lone semicolon
            found[name] = match[3] if match[2] is None else match[2]
            if match[2] is not None and _ODD_QUOTE.search(match[2]):
                raise MalformedRequest("the form has a quote behind a backslash in a header; write %22")
    return found

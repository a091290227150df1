"""The header of one part of a form: its name, and whether a file is in it. RFC 7578; RFC 2231 for `name*`."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from gateway.errors import MalformedRequest

__all__ = ["PartHeader", "parameters", "part_header"]

_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_PARAMETER = re.compile(
    rf'[ \t]*+;[ \t]*+(?:({_TOKEN})[ \t]*+=[ \t]*+(?:"([^"\\]*+(?:\\.[^"\\]*+)*+)"|([^\s;"]*+)))?', re.DOTALL
)
_ESCAPED = re.compile(r'\\(["\\])')
_EXTENDED = re.compile(r"(utf-8|us-ascii|iso-8859-1)'[^']*'(.*)", re.IGNORECASE | re.DOTALL)
_AS_THEY_ARE = frozenset({"", "7bit", "8bit", "binary"})


class PartHeader(NamedTuple):
    """filename: as it was written, None for a part that is no file."""

    name: str
    filename: str | None


def part_header(block: bytes) -> PartHeader:
    """Read a part's header lines, without the empty one after them.

    Raises MalformedRequest where readers could differ: two names, folded lines, parts in another encoding.
    """
    said: dict[bytes, str] = {}
    for line in block.split(b"\r\n"):
        field, colon, value = line.partition(b":")
        if not colon or not field or field != field.strip() or any(odd in line for odd in (b"\n", b"\r", b"\0")):
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
    called = _one(found, "name")
    if called is None:
        raise MalformedRequest("a part of the form has no name")
    filename = found.get("filename")
    return PartHeader(called, found.get("filename*") if filename is None else filename)


def parameters(text: str) -> dict[str, str]:
    """What `; a=b; c="d"` says, names in lower case. Raises MalformedRequest for what is not of that form, or twice."""
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
            found[name] = match[3] if match[2] is None else _ESCAPED.sub(r"\1", match[2])
    return found


def _one(found: dict[str, str], name: str) -> str | None:
    extended = found.get(f"{name}*")
    if extended is None:
        return found.get(name)
    value = _EXTENDED.fullmatch(extended)
    if value is None or name in found:
        raise MalformedRequest(f"a part of the form has a {name} that can't be read")
    return unquote_to_bytes(value[2]).decode(value[1], "replace")

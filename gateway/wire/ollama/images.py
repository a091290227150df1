"""Pictures: bare base64 in Ollama's API, URLs in chat."""

from __future__ import annotations

import binascii
import re

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.raw_members import encode, first_byte, read, read_list

__all__ = ["base64_of", "image_parts"]

_DATA_URL = re.compile(r"data:[\w.+-]*/?[\w.+-]*(?:;[\w=.-]+)*;base64,", re.ASCII)
_BASE64 = re.compile(r"[A-Za-z0-9+/\r\n]+={0,2}[\r\n]*", re.ASCII)
_URL_SAFE = str.maketrans("-_", "+/")
_MAGIC = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
)
_STRING = msgspec.json.Decoder(str)


def image_parts(raw: msgspec.Raw, path: str) -> list[bytes]:
    """Each of an `images` as a raw part of a chat message.

    The type is read from the first bytes, and said to be PNG where they are none that is known: engines look
    themselves. Sounds come as `images` too and become `input_audio`. Raises MalformedRequest with `param` for what is
    no base64.
    """
    parts: list[bytes] = []
    for index, item in enumerate(read_list(raw, path)):
        at = f"{path}[{index}]"
        if first_byte(item) != b'"':
            raise MalformedRequest(f"{at} must be a base64 string", param=at)
        parts.append(_part(read(_STRING, item, at), at))
    return parts


def _part(text: str, path: str) -> bytes:
    found = _DATA_URL.match(text)  # some clients keep the browser's prefix
    data = text if found is None else text[found.end() :]
    if not data.isascii() or _BASE64.fullmatch(data) is None:
        data = data.translate(_URL_SAFE)
        if _BASE64.fullmatch(data) is None:
            raise MalformedRequest(f"{path} is not base64", param=path)
    if "\n" in data or "\r" in data:
        data = data.replace("\r", "").replace("\n", "")
    kind = _kind(data)
    if kind == "wav":
        return b'{"type":"input_audio","input_audio":{"data":' + encode(data) + b',"format":"wav"}}'
    return b'{"type":"image_url","image_url":{"url":' + encode(f"data:{kind};base64,{data}") + b"}}"


def _kind(data: str) -> str:
    try:
        head = binascii.a2b_base64(data[:24])
    except binascii.Error:
        return "image/png"
    if head.startswith(b"RIFF"):
        return "wav" if head[8:12] == b"WAVE" else "image/webp"
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), "image/png")


def base64_of(url: str) -> str | None:
    """The base64 in a data URL; None for another URL, which Ollama does not fetch."""
    found = _DATA_URL.match(url)
    return None if found is None else url[found.end() :]

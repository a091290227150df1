"""The content of a chat message as blocks, raw."""

from __future__ import annotations

import re

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.lost import Lost
from gateway.wire.raw_members import NOTHING, encode, first_byte, is_null, read, read_list

__all__ = ["blocks_of", "text_block"]

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.-]+)*;base64,", re.ASCII)


class _Part(msgspec.Struct, gc=False):
    type: str = "text"
    text: str | None = None
    refusal: str | None = None
    image_url: msgspec.Raw = NOTHING
    file: msgspec.Raw = NOTHING


class _Url(msgspec.Struct, gc=False):
    url: str


class _File(msgspec.Struct, gc=False):
    file_data: str | None = None
    filename: str | None = None


_STRING = msgspec.json.Decoder(str)
_PART = msgspec.json.Decoder(_Part)
_URL = msgspec.json.Decoder(_Url)
_FILE = msgspec.json.Decoder(_File)


def blocks_of(raw: msgspec.Raw, path: str, lost: Lost) -> list[bytes]:
    """Text, pictures and PDF files of a content; empty texts give nothing. Raises MalformedRequest with `param`."""
    if is_null(raw):
        return []
    if first_byte(raw) == b'"':
        text = read(_STRING, raw, path)
        return [text_block(text)] if text.strip() else []
    blocks: list[bytes] = []
    for index, item in enumerate(read_list(raw, path)):
        at = f"{path}[{index}]"
        if first_byte(item) == b'"':  # engines take bare strings too
            blocks += blocks_of(item, at, lost)
        else:
            blocks += _block(read(_PART, item, at), at, lost)
    return blocks


def _block(part: _Part, path: str, lost: Lost) -> list[bytes]:
    if part.type in ("text", "refusal", "input_text", "output_text"):
        text = part.text or part.refusal or ""
        return [text_block(text)] if text.strip() else []
    if part.type == "image_url" and part.image_url is not NOTHING:
        at = f"{path}.image_url"
        if first_byte(part.image_url) == b'"':
            return [_image(read(_STRING, part.image_url, at), at)]
        return [_image(read(_URL, part.image_url, at).url, f"{at}.url")]
    if part.type == "file" and part.file is not NOTHING:
        file = read(_FILE, part.file, f"{path}.file")
        found = None if file.file_data is None else _DATA_URL.match(file.file_data)
        if file.file_data is not None and found is not None and found[1] == "application/pdf":
            source = _base64(found[1], file.file_data[found.end() :])
            title = b"" if not file.filename else b',"title":' + encode(file.filename)
            return [b'{"type":"document","source":' + source + title + b"}"]
    lost.add(f"{path}.type={part.type[:40]}")
    return []


def _image(url: str, path: str) -> bytes:
    found = _DATA_URL.match(url)
    if found is not None:
        source = _base64(found[1] or "image/png", url[found.end() :])
    elif url.startswith(("http://", "https://")):
        source = b'{"type":"url","url":' + encode(url) + b"}"
    else:
        raise MalformedRequest(f"{path} must be an http, https or base64 data URL", param=path)
    return b'{"type":"image","source":' + source + b"}"


def _base64(media_type: str, data: str) -> bytes:
    return b'{"type":"base64","media_type":' + encode(media_type) + b',"data":' + encode(data) + b"}"


def text_block(text: str) -> bytes:
    """One block of text."""
    return b'{"type":"text","text":' + encode(text) + b"}"

"""Compressed request bodies (Codex sends zstd), decoded under a cap and off the event loop when they are big."""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import brotli

from gateway.errors import BodyTooLarge, MalformedRequest, UnsupportedCoding

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["accepted_codings", "decode", "decode_off_loop"]

_INLINE = 64 * 1024
"""Bytes, encoded and decoded, up to which a body is decoded on the loop: well under a millisecond."""

_FRAMES = 64
"""Gzip members or zstd frames in one body; each costs a copy of what follows it, so thousands would be an attack."""

# Two at once: each may hold a whole `limits.body` before the sum of bodies is charged for it.
_workers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="kvgate-decode")


class Inflater(Protocol):
    """What zlib's and zstd's decompressors have in common."""

    @property
    def eof(self) -> bool:
        """Whether the end of the compressed data was seen."""

    @property
    def unused_data(self) -> bytes:
        """What came after that end."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Some decoded bytes; none when more input is needed."""


class _Brotli:
    """brotli knows no frames: what follows its end is damage, and is refused as such."""

    unused_data = b""

    def __init__(self) -> None:
        self._inner = brotli.Decompressor()

    @property
    def eof(self) -> bool:
        return bool(self._inner.is_finished())

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        return bytes(self._inner.process(data, output_buffer_limit=max_length))


class _Zlib:
    """zlib keeps its unread input outside; this puts it back, so that every inflater is fed the same way."""

    def __init__(self, wbits: int) -> None:
        self._inner = zlib.decompressobj(wbits)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


def _deflate(data: bytes) -> Inflater:
    # "deflate" is zlib by RFC 9110, raw deflate by custom; a zlib header is 0x?8 and a multiple of 31.
    wrapped = len(data) >= 2 and data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
    return _Zlib(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)


_INFLATERS: dict[str, Callable[[bytes], Inflater]] = {
    "gzip": lambda _: _Zlib(zlib.MAX_WBITS | 16),
    "x-gzip": lambda _: _Zlib(zlib.MAX_WBITS | 16),
    "deflate": _deflate,
    "br": lambda _: _Brotli(),
    "zstd": lambda _: zstd.ZstdDecompressor(),
}
_damage = (zlib.error, zstd.ZstdError, brotli.error, EOFError)


def accepted_codings() -> tuple[str, ...]:
    """The codings that are read."""
    return tuple(name for name in _INFLATERS if name != "x-gzip")


def _inflate(coding: str, data: bytes, limit: int) -> bytes | None:
    """At most `limit` decoded bytes; None when there are more. Several frames in a row are one body."""
    out: list[bytes] = []
    room = limit + 1
    rest = data
    for _ in range(_FRAMES):
        if not rest:
            return b"".join(out)
        inflater = _INFLATERS[coding](rest)
        feed = rest
        while not inflater.eof:
            piece = inflater.decompress(feed, min(room, 1 << 20))
            feed = b""
            out.append(piece)
            room -= len(piece)
            if room <= 0:
                return None
            if not piece and not inflater.eof:
                raise EOFError
        rest = inflater.unused_data
    if rest:
        raise EOFError
    return b"".join(out)


def decode(coding: str, data: bytes, limit: int) -> bytes:
    """The body that `data` encodes.

    `coding` is the value of Content-Encoding. Raises UnsupportedCoding, BodyTooLarge past `limit` decoded bytes, and
    MalformedRequest for damaged or truncated data.
    """
    name = coding.strip().lower()
    if name in ("", "identity"):
        return data
    _require(name)
    return _checked(name, data, limit)


def _checked(name: str, data: bytes, limit: int) -> bytes:
    try:
        body = _inflate(name, data, limit)
    except _damage:
        raise MalformedRequest(f"the body is not valid {name} data", param="Content-Encoding") from None
    if body is None:
        raise BodyTooLarge(f"the decoded body is over the limit of {limit} bytes (server.limits.body)")
    return body


def _require(name: str) -> None:
    if name not in _INFLATERS:
        readable = ", ".join(accepted_codings())
        raise UnsupportedCoding(
            f"this Content-Encoding is not read here; send one of {readable}, or none", param="Content-Encoding"
        )


async def decode_off_loop(coding: str, data: bytes, limit: int) -> bytes:
    """`decode`, in a worker thread unless both sides of it are small. Raises as `decode` does."""
    name = coding.strip().lower()
    if name in ("", "identity"):
        return data
    _require(name)
    if len(data) <= _INLINE:
        small = min(limit, _INLINE)
        try:
            body = _inflate(name, data, small)
        except _damage:
            raise MalformedRequest(f"the body is not valid {name} data", param="Content-Encoding") from None
        if body is not None:
            return body
    return await asyncio.get_running_loop().run_in_executor(_workers, _checked, name, data, limit)

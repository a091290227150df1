"""An answer that an engine, or a proxy before it, compressed although it was asked not to."""

from __future__ import annotations

import zlib

from gateway.errors import StreamBroken
from gateway.relay.headers import first
from gateway.relay.sink import Headers

__all__ = ["Inflater", "inflater_for"]

_AT_ONCE = 4 << 20  # bytes out of one read; a bomb ends here


class Inflater:
    """Unpacks gzip or deflate as it comes."""

    def __init__(self) -> None:
        self._unpack = zlib.decompressobj(zlib.MAX_WBITS | 32)

    def feed(self, data: bytes, most: int = _AT_ONCE) -> bytes:
        """What `data` completes. Raises StreamBroken for damaged data, or over `most` bytes at once."""
        try:
            out = self._unpack.decompress(data, most + 1)
        except zlib.error:
            raise StreamBroken("the engine's answer is compressed and damaged") from None
        if len(out) > most:
            raise StreamBroken(f"the engine's answer is compressed and unpacks to more than {most} bytes at once")
        return out

    @property
    def whole(self) -> bool:
        """The compressed data has come to its own end."""
        return self._unpack.eof


def inflater_for(headers: Headers) -> Inflater | None:
    """The inflater that this answer needs, None for a plain one. Raises StreamBroken for a coding nobody asked for."""
    coding = (first(headers, "content-encoding") or "identity").lower()
    if coding == "identity":
        return None
    if coding in ("gzip", "x-gzip", "deflate"):
        return Inflater()
    raise StreamBroken("the engine's answer has a content coding that was not asked for")

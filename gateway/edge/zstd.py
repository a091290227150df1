"""zstd, from whichever package this installation has: the standard library (3.14), its backport, or `zstandard`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Inflater", "zstd_inflater"]


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


class _Zstandard:
    """The `zstandard` package, in the shape of the standard library's decompressor.

    Its streaming objects either take no output limit or miss a truncated end. So input goes in by slices: a block takes
    at least 4 bytes and gives at most 128 KiB, which bounds what a slice can give to 8 MiB.
    """

    _SLICE = 256

    def __init__(self, module: Any) -> None:
        self._inner = module.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
        self._pending = memoryview(b"")

    @property
    def eof(self) -> bool:
        return bool(self._inner.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._inner.unused_data) + bytes(self._pending)

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        if data:
            self._pending = memoryview(data)
        out: list[bytes] = []
        size = 0
        while self._pending and size < max_length and not self._inner.eof:
            piece = self._inner.decompress(self._pending[: self._SLICE])
            self._pending = self._pending[self._SLICE :]
            size += len(piece)
            out.append(piece)
        return b"".join(out)


def zstd_inflater() -> tuple[Callable[[], Inflater], type[Exception]] | None:
    """How to make a decompressor, and what it raises on damaged data; None when no package is there."""
    for name in ("compression.zstd", "backports.zstd"):
        module = _import(name)
        if module is not None:
            return module.ZstdDecompressor, module.ZstdError
    module = _import("zstandard")
    if module is not None:
        package = module
        return lambda: _Zstandard(package), package.ZstdError
    return None


def _import(name: str) -> Any | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None

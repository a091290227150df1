"""Reads the head of a GGUF file (versions 2 and 3, either byte order), never its weights.

A file may be anybody's, so every count is bounded before anything is read or allocated for it. Format as in ggml's
docs/gguf.md.
"""

from __future__ import annotations

import itertools
import math
import struct
from typing import Any, BinaryIO

from gateway.core.kv.gguf.header import GgufHeader, GgufTensor, LongArray
from gateway.core.kv.gguf.tensor_types import tensor_bytes

__all__ = ["GgufError", "read_gguf_header"]

_KEPT = 4096
"""Elements of an array that is kept; a longer one (vocabulary, merges, scores) is passed over."""
_KEYS, _TENSORS, _DIMS = 65_536, 262_144, 4
_NAME, _TEXT, _ELEMENTS = 65_535, 16 * 1024**2, 16 * 1024**2
_LARGEST = 2**50
"""Elements of one tensor, and bytes of all: beyond any model."""
_STRING, _ARRAY = 8, 9
_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Value type -> how struct spells it."""


class GgufError(ValueError):
    """The file is no GGUF file, or a broken or hostile one; the message says where."""


def read_gguf_header(file: BinaryIO) -> GgufHeader:
    """Metadata and tensors of a GGUF file, from its start. Raises GgufError; I/O errors are passed on."""
    size = file.seek(0, 2)
    file.seek(0)
    magic, raw = file.read(4), file.read(4)
    if magic != b"GGUF":
        raise GgufError("this is no GGUF file")
    if len(raw) < 4:
        raise GgufError("the file ends in its header")
    version, order = _version(raw)
    reader = _Reader(file, order, size)
    tensors, keys = reader.number("Q"), reader.number("Q")
    if keys > _KEYS or tensors > _TENSORS:
        raise GgufError(f"the header claims {keys} keys and {tensors} tensors")
    metadata: dict[str, Any] = {}
    for _ in range(keys):
        name = reader.text(_NAME)
        if name in metadata:
            raise GgufError(f"the key {name[:60]!r} is there twice")
        metadata[name] = reader.value(reader.number("I"), name)
    infos = [_tensor(reader) for _ in range(tensors)]
    return GgufHeader(version, metadata, _sized(infos, metadata, reader.at, size), order == ">")


def _version(raw: bytes) -> tuple[int, str]:
    little, big = int.from_bytes(raw, "little"), int.from_bytes(raw, "big")
    version, order = (little, "<") if little & 0xFFFF else (big, ">")
    if version == 1:
        raise GgufError("GGUF version 1 is no longer read, by llama.cpp neither: convert it")
    if version not in (2, 3):
        raise GgufError(f"GGUF version {version} is not known")
    return version, order


class _Reader:
    """Numbers and texts of one byte order; refuses what the file is too short for before it reads."""

    def __init__(self, file: BinaryIO, order: str, size: int) -> None:
        self._file, self._order, self._size = file, order, size
        self.at = file.tell()

    def take(self, count: int) -> bytes:
        if count > self._size - self.at:
            raise GgufError("the file ends in its header")
        found = self._file.read(count)
        if len(found) < count:
            raise GgufError("the file ends in its header")
        self.at += count
        return found

    def number(self, kind: str) -> Any:
        spelled = self._order + kind
        return struct.unpack(spelled, self.take(struct.calcsize(spelled)))[0]

    def text(self, longest: int) -> str:
        length = self.number("Q")
        if length > longest:
            raise GgufError(f"a text of {length} bytes, more than {longest}")
        return self.take(length).decode("utf-8", "replace")

    def skip(self, count: int) -> None:
        if count > self._size - self.at:
            raise GgufError("the file ends in its header")
        self.at += count
        self._file.seek(self.at)

    def value(self, kind: int, name: str) -> Any:
        if kind == _STRING:
            return self.text(_TEXT)
        if kind == _ARRAY:
            return self._array(name)
        if kind not in _FORMATS:
            raise GgufError(f"{name[:60]!r} has a value of type {kind}, which is not known")
        return self.number(_FORMATS[kind])

    def _array(self, name: str) -> Any:
        kind, length = self.number("I"), self.number("Q")
        if kind == _ARRAY or (kind != _STRING and kind not in _FORMATS):
            raise GgufError(f"{name[:60]!r} is an array of type {kind}, which is not known")
        if length > _ELEMENTS:
            raise GgufError(f"{name[:60]!r} claims {length} elements")
        if kind == _STRING:
            return self._texts(length)
        spelled = f"{self._order}{length}{_FORMATS[kind]}"
        if length <= _KEPT:
            return struct.unpack(spelled, self.take(struct.calcsize(spelled)))
        self.skip(struct.calcsize(spelled))
        return LongArray(length)

    def _texts(self, length: int) -> Any:
        if length <= _KEPT:
            return tuple(self.text(_TEXT) for _ in range(length))
        if length * 8 > self._size - self.at:
            raise GgufError("the file ends in its header")
        for _ in range(length):
            size = self.number("Q")
            if size > _TEXT:
                raise GgufError(f"a text of {size} bytes, more than {_TEXT}")
            self.take(size)  # short, so the buffer has it: a seek would empty the buffer each time
        return LongArray(length)


def _tensor(reader: _Reader) -> tuple[str, tuple[int, ...], int, int]:
    name, dims = reader.text(_NAME), reader.number("I")
    if dims > _DIMS:
        raise GgufError(f"the tensor {name[:60]!r} claims {dims} dimensions")
    shape = tuple(reader.number("Q") for _ in range(dims))
    if math.prod(shape) > _LARGEST:
        raise GgufError(f"the tensor {name[:60]!r} claims {math.prod(shape):.1e} elements")
    kind, offset = reader.number("I"), reader.number("Q")
    return name, shape, kind, offset


def _sized(
    infos: list[tuple[str, tuple[int, ...], int, int]], metadata: dict[str, Any], at: int, size: int
) -> tuple[GgufTensor, ...]:
    """Bytes of each tensor: by its number format, or, of a format that isn't known here, up to the next tensor."""
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 0 < alignment <= 2**20:
        raise GgufError("general.alignment is no alignment")
    start = -(-at // alignment) * alignment
    ends = sorted({offset for *_, offset in infos} | {max(0, size - start)})
    following = dict(itertools.pairwise(ends))
    found, seen = [], set()
    for name, shape, kind, offset in infos:
        if name in seen:
            raise GgufError(f"the tensor {name[:60]!r} is there twice")
        seen.add(name)
        try:
            known = tensor_bytes(kind, shape)
        except ValueError as broken:
            raise GgufError(f"the tensor {name[:60]!r}: {broken}") from None
        if known is None:
            known = max(0, following.get(offset, offset) - offset)
        if offset > _LARGEST or offset + known > _LARGEST:
            raise GgufError(f"the tensor {name[:60]!r} lies beyond any file")
        found.append(GgufTensor(name, shape, kind, known))
    return tuple(found)

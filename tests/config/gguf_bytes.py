"""GGUF files of bytes, written by hand: any version, either byte order, and every kind of lie."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

Tensor = tuple[str, Sequence[int], int]
"""Name, shape, ggml type."""


def text(value: str, order: str = "<") -> bytes:
    raw = value.encode()
    return struct.pack(f"{order}Q", len(raw)) + raw


def value(given: Any, order: str = "<") -> bytes:
    """Its type number and itself, as a writer of GGUF would choose them."""
    match given:
        case bool():
            return struct.pack(f"{order}I?", 7, given)
        case int():
            return struct.pack(f"{order}II", 4, given)
        case float():
            return struct.pack(f"{order}If", 6, given)
        case str():
            return struct.pack(f"{order}I", 8) + text(given, order)
        case list() if given and isinstance(given[0], str):
            return struct.pack(f"{order}IIQ", 9, 8, len(given)) + b"".join(text(one, order) for one in given)
        case list() if given and isinstance(given[0], bool):
            return struct.pack(f"{order}IIQ{len(given)}?", 9, 7, len(given), *given)
        case list():
            return struct.pack(f"{order}IIQ{len(given)}i", 9, 5, len(given), *given)
    raise AssertionError(f"no type for {given!r}")


def gguf(
    metadata: Mapping[str, Any],
    tensors: Sequence[Tensor] = (),
    *,
    version: int = 3,
    order: str = "<",
    rest: bytes = b"",
) -> bytes:
    made = b"GGUF" + struct.pack(f"{order}IQQ", version, len(tensors), len(metadata))
    made += b"".join(text(key, order) + value(given, order) for key, given in metadata.items())
    for number, (name, shape, kind) in enumerate(tensors):
        made += text(name, order) + struct.pack(f"{order}I{len(shape)}Q", len(shape), *shape)
        made += struct.pack(f"{order}IQ", kind, number * 1024)
    return made + rest

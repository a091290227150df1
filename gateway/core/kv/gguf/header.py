"""What the head of a GGUF file holds: metadata, and the name, shape and number format of each tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["GgufHeader", "GgufTensor", "LongArray"]


@dataclass(frozen=True, slots=True)
class LongArray:
    """An array of metadata that is too long to keep (a vocabulary): only its length, in elements."""

    length: int


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One tensor; `bytes` without alignment, `kind` is ggml's type number."""

    name: str
    shape: tuple[int, ...]
    kind: int
    bytes: int

    @property
    def elements(self) -> int:
        """Numbers in the tensor."""
        count = 1
        for length in self.shape:
            count *= length
        return count


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """One file's head, or the heads of all parts of a split file: metadata of the first, tensors of all.

    `missing`: parts of a split file that weren't there.
    """

    version: int
    metadata: Mapping[str, Any]
    tensors: tuple[GgufTensor, ...]
    big_endian: bool = False
    parts: int = 1
    missing: int = 0

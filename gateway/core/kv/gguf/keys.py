"""Metadata of one GGUF architecture: keys without its prefix, one number a layer where llama.cpp allows a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.core.kv.described import ModelFileError
from gateway.core.kv.gguf.header import LongArray
from gateway.core.kv.values import Values

__all__ = ["GgufKeys"]


class GgufKeys(Values):
    """`get("block_count")` is `llama.block_count` of a llama model. Arrays too long to keep count as absent."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        """Raises ModelFileError without `general.architecture`."""
        super().__init__(metadata, {}, {})
        self._metadata = metadata
        arch = metadata.get("general.architecture")
        if not isinstance(arch, str) or not arch:
            raise ModelFileError("general.architecture is missing")
        self.arch = arch

    def get(self, *keys: str) -> Any:
        """The value of the first key that is there, or None."""
        for key in keys:
            found = self._metadata.get(self.spelled(key))
            if found is not None and not isinstance(found, LongArray):
                return list(found) if isinstance(found, tuple) else found
        return None

    def spelled(self, key: str) -> str:
        """The key as it stands in the file."""
        return f"{self.arch}.{key}"

    def flags(self, key: str, layers: int) -> tuple[bool, ...] | None:
        """A list of true and false, or of 0 and 1, for each layer; None when absent or a single number."""
        found = self.get(key)
        if not isinstance(found, list):
            return None
        if len(found) < layers:
            raise ModelFileError(f"{self.spelled(key)} has {len(found)} layers, the model {layers}")
        return tuple(bool(one) for one in found[:layers])

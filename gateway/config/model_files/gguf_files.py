"""GGUF files on disk: one file, or the parts that a large model is split into."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gateway.config.model_files.gguf_header import GgufError, read_gguf_header
from gateway.core.kv.described import DescribedModel
from gateway.core.kv.gguf.header import GgufHeader
from gateway.core.kv.gguf.reader import model_from_gguf

__all__ = ["described_by_gguf", "gguf_in", "read_gguf"]

_PART = re.compile(r"^(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf$", re.IGNORECASE)
_PARTS = 4096


def described_by_gguf(path: Path) -> DescribedModel:
    """The model of a GGUF file, or of all parts of one. Raises ValueError if broken, OSError if it can't be read."""
    return model_from_gguf(read_gguf(path))


def gguf_in(folder: Path) -> list[Path]:
    """Models in a folder: GGUF files, of a split one the first part, image encoders left out."""
    found = [path for path in sorted(folder.glob("*.gguf")) if "mmproj" not in path.name.casefold()]
    return [path for path in found if (part := _PART.match(path.name)) is None or int(part["number"]) == 1]


def read_gguf(path: Path) -> GgufHeader:
    """The head of a GGUF file; of a split one, metadata of its first part and tensors of all that are there.

    Raises GgufError on a broken file or when the first part isn't there, OSError on an unreadable one.
    """
    part = _PART.match(path.name)
    if part is None:
        with path.open("rb") as file:
            return read_gguf_header(file)
    count = int(part["count"])
    if not 1 <= count <= _PARTS:
        raise GgufError(f"{count} parts are more than any model has")
    heads = []
    for number in range(1, count + 1):
        one = path.with_name(f"{part['stem']}-{number:05d}-of-{part['count']}.gguf")
        if not one.is_file():
            if number == 1:
                raise GgufError(f"{one.name}, the part with the metadata, is not here")
            continue
        with one.open("rb") as file:
            heads.append(read_gguf_header(file))
    tensors = tuple(tensor for head in heads for tensor in head.tensors)
    _same_split(heads[0].metadata, count)
    return replace(heads[0], tensors=tensors, parts=count, missing=count - len(heads))


def _same_split(metadata: Mapping[str, Any], count: int) -> None:
    stated = metadata.get("split.count")
    if isinstance(stated, int) and stated not in (0, count):
        raise GgufError(f"split.count is {stated}, but the name says {count} parts")

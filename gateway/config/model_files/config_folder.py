"""A config.json and what lies beside it: the quantiser's own file, and the index that tells the size of the weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gateway.core.kv.described import DescribedModel, ModelFileError
from gateway.core.kv.hf_config.reader import model_from_config

__all__ = ["described_by_config"]

_LARGEST = 64 * 1024**2
"""Bytes of a JSON file that is read: the index of a model of a thousand layers has some ten million."""


def described_by_config(path: Path, *, name: str = "") -> DescribedModel:
    """The model of a config.json; `name` is its id if neither file nor folder tells.

    Raises ModelFileError (a ValueError) on a file that can't be understood, OSError on one that can't be read.
    """
    config = _object(path)
    folder = path.parent
    beside = folder / "hf_quant_config.json"
    if "quantization_config" not in config and beside.is_file():
        stated = _object(beside).get("quantization")
        config = {**config, "quantization_config": stated} if isinstance(stated, Mapping) else config
    named = name or str(config.get("_name_or_path") or "") or _named_by_folder(path)
    found = model_from_config(config, name=named)
    template = (folder / "chat_template.jinja").is_file() or _has_template(folder / "tokenizer_config.json")
    found = replace(found, chat_template=template or None)
    size = _weights_on_disk(folder)
    return replace(found, weights_bytes=size, weights_exact=True) if size else found


def _named_by_folder(path: Path) -> str:
    return path.resolve().parent.name if path.name == "config.json" else path.stem.removesuffix("_config")


def _weights_on_disk(folder: Path) -> int:
    """Bytes of the weights: what their index says, else the files themselves; 0 when they aren't here."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        stated = _object(index).get("metadata")
        size = stated.get("total_size") if isinstance(stated, Mapping) else None
        if isinstance(size, int | float) and 0 < size < 2**60:
            return int(size)
    return sum(one.stat().st_size for one in folder.glob("model*.safetensors"))


def _has_template(path: Path) -> bool:
    try:
        return path.is_file() and "chat_template" in _object(path)
    except ModelFileError:
        return False


def _object(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        raw = file.read(_LARGEST + 1)
    if len(raw) > _LARGEST:
        raise ModelFileError(f"{path.name} is larger than any configuration")
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        raise ModelFileError(f"{path.name} is not JSON") from None
    if not isinstance(found, dict):
        raise ModelFileError(f"{path.name} must be one JSON object")
    return found

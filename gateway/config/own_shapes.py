"""An own model as the core counts with it: what a model file tells, under what the entry itself says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gateway.config.model_files.config_folder import described_by_config
from gateway.config.model_files.gguf_files import described_by_gguf
from gateway.core.kv.catalog_entry import model_shape_from_catalog
from gateway.core.kv.model import ModelShape

if TYPE_CHECKING:
    from gateway.config.own_entries import OwnModel

__all__ = ["own_shape"]

_WRITTEN = {
    "family": ("family",),
    "params_total_b": ("params_total", "expert_params"),
    "calc_total_b": ("params_total", "expert_params"),
    "params_active_b": ("params_active",),
    "calc_read_b": ("read_params",),
    "layers": ("depth",),
    "hidden": ("hidden",),
    "attention": ("layers", "kv_known"),
    "moe": ("experts", "experts_per_token", "expert_params"),
    "mtp_layers": ("draft_layers",),
    "max_context": ("max_context",),
    "vocab": ("vocab",),
}
"""Keys of an entry, and the fields of the shape that they decide where a file tells the rest."""


def own_shape(entry: OwnModel) -> ModelShape:
    """The shape of an entry.

    Raises OSError where its file can't be read, ValueError where the file can't be understood or the entry is odd.
    """
    said: dict[str, Any] = entry.model_dump(exclude_none=True, exclude_unset=True, exclude={"config", "gguf", "kv"})
    file = entry.config or entry.gguf
    if file is None:
        said.setdefault("source", "this file")
        return model_shape_from_catalog(said)
    if entry.config is not None and entry.gguf is not None:
        raise ValueError("names both a config.json and a GGUF file: one of them must do")
    said.setdefault("source", file.name)
    written = model_shape_from_catalog(said)
    read = (described_by_config(file, name=entry.id) if entry.config is not None else described_by_gguf(file)).shape
    fields = {"id", "source", "confidence"} | {field for key in said for field in _WRITTEN.get(key, ())}
    aliases = tuple(dict.fromkeys([*written.aliases, *([read.id] if read.id != entry.id else []), *read.aliases]))
    return replace(read, aliases=aliases, **{field: getattr(written, field) for field in fields})

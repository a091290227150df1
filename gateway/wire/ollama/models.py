"""The models in Ollama's dialect: /api/tags, /api/show, /api/ps and /api/version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.wire.ollama.created_at import created_at

__all__ = ["OllamaModel", "ps", "show", "tags", "version"]

_NEVER = "9999-12-31T23:59:59Z"
_UNITS = ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K"))


@dataclass(frozen=True, slots=True)
class OllamaModel:
    """One model as Ollama's clients see it. What is not known is None, or empty.

    name: what they ask for. window: tokens of context. params: how many weights. size_bytes: of the weights. quant: as
    engines name it (`Q4_K_M`). family: the architecture (`qwen3`). modified: Unix seconds. capabilities: of completion,
    tools, vision, thinking, insert and embedding.
    """

    name: str
    window: int | None = None
    params: int | None = None
    size_bytes: int | None = None
    quant: str = ""
    family: str = ""
    capabilities: tuple[str, ...] = ("completion",)
    modified: int = 0


def tags(entries: Iterable[OllamaModel]) -> bytes:
    """The body of `GET /api/tags`."""
    return msgspec.json.encode({"models": [_listed(entry) for entry in entries]})


def ps(entries: Iterable[OllamaModel]) -> bytes:
    """The body of `GET /api/ps`, for models that are loaded; a gateway unloads none, so they never expire."""
    loaded = [
        {
            **_named(entry),
            "expires_at": _NEVER,
            "size_vram": entry.size_bytes or 0,
            "context_length": entry.window or 0,
        }
        for entry in entries
    ]
    return msgspec.json.encode({"models": loaded})


def show(entry: OllamaModel) -> bytes:
    """The body of `POST /api/show`. Clients find the window in `model_info`, and as num_ctx in `parameters`."""
    family = entry.family or "unknown"
    info: dict[str, Any] = {"general.architecture": family, "general.basename": entry.name}
    if entry.params is not None:
        info["general.parameter_count"] = entry.params
    if entry.window is not None:
        info[f"{family}.context_length"] = entry.window
    return msgspec.json.encode(
        {
            "modelfile": "",
            "parameters": "" if entry.window is None else f"{'num_ctx':<30} {entry.window}",
            "template": "",
            "details": _details(entry),
            "model_info": info,
            "capabilities": list(entry.capabilities),
            "modified_at": created_at(entry.modified),
        }
    )


def version(text: str) -> bytes:
    """The body of `GET /api/version`; clients compare it with the version that brought what they want to use."""
    return msgspec.json.encode({"version": text})


def _listed(entry: OllamaModel) -> dict[str, Any]:
    return {**_named(entry), "modified_at": created_at(entry.modified)}


def _named(entry: OllamaModel) -> dict[str, Any]:
    return {
        "name": entry.name,
        "model": entry.name,
        "size": entry.size_bytes or 0,
        # Ollama's own command shows the first twelve characters, and dies of fewer (cmd/cmd.go).
        "digest": hashlib.sha256(entry.name.encode("utf-8", "replace")).hexdigest(),
        "details": _details(entry),
    }


def _details(entry: OllamaModel) -> dict[str, Any]:
    return {
        "parent_model": "",
        "format": "",
        "family": entry.family,
        "families": [entry.family] if entry.family else None,
        "parameter_size": "" if entry.params is None else _size(entry.params),
        "quantization_level": entry.quant,
    }


def _size(params: int) -> str:
    for unit, letter in _UNITS:
        if params >= unit:
            return f"{params / unit:.1f}{letter}" if params < 100 * unit else f"{params // unit}{letter}"
    return str(params)

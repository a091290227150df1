"""The model list, with the limits that clients size their prompts by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

__all__ = ["ModelEntry", "model_list", "model_one"]


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model as clients see it.

    window: tokens that one request may use, as the gateway enforces it; max_output: tokens that it may generate. None
    when unknown: a wrong figure makes agents compact without end, a missing one makes them ask. created: Unix seconds.
    abilities: what every backend of it can do, of tools, vision, audio, json_schema and logprobs. surfaces: what it may
    be asked in, by the names of `gateway.wire.surfaces`; None when that is not known. ready: a backend of it works now.
    """

    id: str
    created: int = 0
    owned_by: str = "kvgate"
    window: int | None = None
    max_output: int | None = None
    abilities: frozenset[str] = frozenset()
    surfaces: frozenset[str] | None = None
    ready: bool = True


def _fields(entry: ModelEntry) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": entry.id,
        "object": "model",
        "created": entry.created,
        "owned_by": entry.owned_by,
    }
    if entry.window is not None:  # every name under which some client looks for it
        fields |= {"max_model_len": entry.window, "context_window": entry.window, "context_length": entry.window}
    if entry.max_output is not None:
        fields["max_output_tokens"] = entry.max_output
    return fields


def model_list(entries: Iterable[ModelEntry]) -> bytes:
    """The body of `GET /v1/models`."""
    return msgspec.json.encode({"object": "list", "data": [_fields(entry) for entry in entries]})


def model_one(entry: ModelEntry) -> bytes:
    """The body of `GET /v1/models/{id}`."""
    return msgspec.json.encode(_fields(entry))

"""Recordings of a real vLLM 0.32 (a tiny model, block size 128) and comparison by shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "recordings" / "vllm"


def recorded(name: str) -> dict[str, Any]:
    """All exchanges of a recordings file, by name."""
    loaded: dict[str, Any] = json.loads((FOLDER / f"sim_{name}.json").read_text())
    return loaded


def shape(value: Any) -> Any:
    """Keys in their order and types of values; what a client can rely on."""
    if isinstance(value, dict):
        return [(key, shape(inner)) for key, inner in value.items()]
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return type(value).__name__


def events_of(stream: str) -> list[Any]:
    """Events of a server-sent stream, decoded."""
    datas = [event.removeprefix("data: ") for event in stream.split("\n\n") if event]
    return [data if data == "[DONE]" else json.loads(data) for data in datas]

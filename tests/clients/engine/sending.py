"""How answers are cut into events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

__all__ = ["Events", "line", "pieces", "sse"]

Events: TypeAlias = Iterator[bytes]


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def sse(data: Any, event: str = "") -> bytes:
    """One server-sent event."""
    name = f"event: {event}\n".encode() if event else b""
    return name + b"data: " + _json(data) + b"\n\n"


def line(data: Any) -> bytes:
    """One line of a JSON stream."""
    return _json(data) + b"\n"


def pieces(text: str, size: int = 7) -> list[str]:
    """The text in pieces as tokens would cut it: within words, escapes and numbers."""
    return [text[start : start + size] for start in range(0, len(text), size)]

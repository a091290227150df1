"""Read probe answers leniently: an odd one counts as none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.engines.adapter import Answer

__all__ = ["count", "json_list", "json_object", "text"]


def _json(answers: Mapping[str, Answer], path: str) -> object:
    answer = answers.get(path)
    if answer is None or answer.status != 200:
        return None
    try:
        return msgspec.json.decode(answer.body)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None


def json_object(answers: Mapping[str, Answer], path: str) -> dict[str, Any]:
    """The object that `path` answered with 200, else an empty one."""
    value = _json(answers, path)
    return value if isinstance(value, dict) else {}


def json_list(answers: Mapping[str, Answer], path: str, *keys: str) -> list[dict[str, Any]]:
    """The objects in the array at `keys` of what `path` answered with 200, else none."""
    value = _json(answers, path)
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def count(value: object) -> int | None:
    """A whole number of at least one, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def text(answers: Mapping[str, Answer], path: str) -> bytes:
    """The body that `path` answered with 200, else empty."""
    answer = answers.get(path)
    return b"" if answer is None or answer.status != 200 else answer.body

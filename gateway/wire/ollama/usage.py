"""What an answer cost, in Ollama's figures: tokens, and durations in nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.wire.usage import MOST_TOKENS, Usage

__all__ = ["figures", "usage_of"]

_NANOSECONDS = 1_000_000_000
_MOST = 10**14
"""Nanoseconds; more than a day is no duration of an answer."""


def usage_of(payload: Mapping[str, Any]) -> Usage | None:
    """The usage in a decoded answer or last line, or None when it has none.

    Ollama leaves members out that are 0, and old servers the whole prompt when it was cached. `prompt_eval_count` holds
    the cached tokens too; new servers tell how many in `prompt_eval_cached_count`.
    """
    prompt = _tokens(payload.get("prompt_eval_count"))
    completion = _tokens(payload.get("eval_count"))
    if prompt is None and completion is None:
        return None
    cached = _tokens(payload.get("prompt_eval_cached_count"))
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached if cached is not None and prompt is not None and cached <= prompt else None,
        prompt_seconds=_seconds(payload.get("prompt_eval_duration")),
        decode_seconds=_seconds(payload.get("eval_duration")),
    )


def figures(usage: Usage | None) -> dict[str, int]:
    """The members that end an answer; clients divide by them, so all are there, 0 for what the engine did not tell."""
    told = Usage(None, None) if usage is None else usage
    reading, writing = _nanoseconds(told.prompt_seconds), _nanoseconds(told.decode_seconds)
    found = {
        "total_duration": reading + writing,
        "load_duration": 0,
        "prompt_eval_count": told.prompt_tokens or 0,
        "prompt_eval_duration": reading,
        "eval_count": told.completion_tokens or 0,
        "eval_duration": writing,
    }
    if told.cached_tokens is not None:
        found["prompt_eval_cached_count"] = told.cached_tokens
    return found


def _nanoseconds(seconds: float | None) -> int:
    return 0 if seconds is None else round(seconds * _NANOSECONDS)


def _tokens(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None


def _seconds(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _MOST:
        return value / _NANOSECONDS
    return None

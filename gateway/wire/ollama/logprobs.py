"""Log probabilities: chat's and Ollama's entries are alike, legacy text completions have columns."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["chat_logprobs", "ollama_logprobs"]

_MOST = 20
"""Alternatives of one token."""


def ollama_logprobs(told: object) -> list[dict[str, Any]]:
    """The entries of a choice's `logprobs` that are such, in Ollama's shape."""
    if not isinstance(told, dict):
        return []
    content = told.get("content")
    if isinstance(content, list):
        return [entry for item in content if (entry := _entry(item, alternatives=True)) is not None]
    tokens, values = told.get("tokens"), told.get("token_logprobs")
    if not isinstance(tokens, list) or not isinstance(values, list):
        return []
    tops = told.get("top_logprobs")
    found: list[dict[str, Any]] = []
    for index, (token, value) in enumerate(zip(tokens, values, strict=False)):
        top = tops[index] if isinstance(tops, list) and index < len(tops) else None
        others = [{"token": name, "logprob": each} for name, each in top.items()] if isinstance(top, dict) else None
        entry = _entry({"token": token, "logprob": value, "top_logprobs": others}, alternatives=True)
        if entry is not None:
            found.append(entry)
    return found


def chat_logprobs(told: object) -> dict[str, Any] | None:
    """A choice's `logprobs` of what an Ollama answer has as such; None when there are none."""
    entries = ollama_logprobs({"content": told})
    if not entries:
        return None
    return {"content": [{"bytes": None, "top_logprobs": [], **_with_bytes(entry)} for entry in entries]}


def _with_bytes(entry: dict[str, Any]) -> dict[str, Any]:
    if "top_logprobs" not in entry:
        return entry
    return {**entry, "top_logprobs": [{"bytes": None, **each} for each in entry["top_logprobs"]]}


def _entry(item: object, *, alternatives: bool) -> dict[str, Any] | None:
    if not isinstance(item, dict):
        return None
    token, value = item.get("token"), item.get("logprob")
    if not isinstance(token, str) or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not math.isfinite(value):  # JSON has no word for it
        return None
    entry: dict[str, Any] = {"token": token, "logprob": value}
    octets = item.get("bytes")
    if isinstance(octets, list) and all(isinstance(each, int) for each in octets):
        entry["bytes"] = octets
    others = item.get("top_logprobs")
    if alternatives and isinstance(others, list):
        read = [each for other in others[:_MOST] if (each := _entry(other, alternatives=False)) is not None]
        if read:
            entry["top_logprobs"] = read
    return entry

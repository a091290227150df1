"""Log probabilities in the shape of a response."""

from __future__ import annotations

from typing import Any

__all__ = ["log_probabilities"]

_BYTES = 64
"""The most that one token is made of."""
_UNLIKELY = 9999.0
"""OpenAI's word for a token that is hardly possible, in place of minus infinity."""


def log_probabilities(told: object) -> list[dict[str, Any]]:
    """The log probabilities of a choice's text in the shape of a response; none for what has another shape."""
    entries = told.get("content") if isinstance(told, dict) else None
    return [_entry(entry) for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    top = entry.get("top_logprobs")
    return {
        **_token(entry),
        "top_logprobs": [_token(each) for each in top if isinstance(each, dict)] if isinstance(top, list) else [],
    }


def _token(entry: dict[str, Any]) -> dict[str, Any]:
    token, raw = entry.get("token"), entry.get("bytes")
    logprob: object = entry.get("logprob")
    likely = isinstance(logprob, int | float) and -_UNLIKELY < logprob < _UNLIKELY
    known = isinstance(raw, list) and len(raw) <= _BYTES and all(type(each) is int and 0 <= each < 256 for each in raw)
    return {
        "token": token if isinstance(token, str) else "",
        "bytes": raw if known else [],
        "logprob": logprob if likely else -_UNLIKELY,
    }

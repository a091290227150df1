"""Times as Ollama writes them."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["created_at"]

_LATEST = 253_402_300_799
"""The last second that a date of four-digit years can tell."""


def created_at(seconds: int) -> str:
    """Unix seconds as RFC 3339, in UTC."""
    told = datetime.fromtimestamp(min(max(seconds, 0), _LATEST), tz=UTC)
    return told.strftime("%Y-%m-%dT%H:%M:%SZ")

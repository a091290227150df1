"""Walk over what pydantic validates lazily: iterables are validated only then."""

from __future__ import annotations

from typing import Any

__all__ = ["drain"]


def drain(value: Any) -> None:
    """Every item of it, at any depth. Raises pydantic's ValidationError for one that is not what it should be."""
    if isinstance(value, dict):
        for item in value.values():
            drain(item)
    elif hasattr(value, "__iter__") and not isinstance(value, str | bytes):
        for item in value:
            drain(item)

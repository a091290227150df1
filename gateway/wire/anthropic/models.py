"""The model list and token counts in Anthropic's dialect."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from gateway.wire.models import ModelEntry

__all__ = ["count_body", "model_one", "models"]

_LATEST = 253_402_300_799
"""The last second that a date of four-digit years can tell."""


def models(entries: Iterable[ModelEntry]) -> bytes:
    """The body of `GET /v1/models` to a client that sends `anthropic-version`: always one page with all of them."""
    data = [_fields(entry) for entry in entries]
    return msgspec.json.encode(
        {
            "data": data,
            "has_more": False,
            "first_id": data[0]["id"] if data else None,
            "last_id": data[-1]["id"] if data else None,
        }
    )


def model_one(entry: ModelEntry) -> bytes:
    """The body of `GET /v1/models/{id}` to such a client."""
    return msgspec.json.encode(_fields(entry))


def count_body(tokens: int) -> bytes:
    """The body of `POST /v1/messages/count_tokens`."""
    return msgspec.json.encode({"input_tokens": tokens})


def _fields(entry: ModelEntry) -> dict[str, Any]:
    created = datetime.fromtimestamp(min(max(entry.created, 0), _LATEST), tz=UTC)
    fields: dict[str, Any] = {
        "type": "model",
        "id": entry.id,
        "display_name": entry.id,
        "created_at": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lifecycle": "active",
    }
    if entry.window is not None:
        fields["max_input_tokens"] = entry.window
    if entry.max_output is not None:
        fields["max_tokens"] = entry.max_output
    return fields

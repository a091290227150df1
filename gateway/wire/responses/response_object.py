"""The response object: what an answer is as a whole, and what each of a stream's own events of it tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from gateway.wire.raw_members import encode
from gateway.wire.responses.asked import Asked
from gateway.wire.responses.settings import NO_SETTINGS
from gateway.wire.translation import Stamp
from gateway.wire.usage import MOST_TOKENS, Usage

__all__ = ["INCOMPLETE", "response_object", "usage_figures"]

INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Why a response is not complete, by chat's reason to end."""


def response_object(
    asked: Asked,
    stamp: Stamp,
    status: str,
    output: Sequence[dict[str, Any]] = (),
    usage: dict[str, Any] | None = None,
    reason: str | None = None,
    encode: Callable[[object], bytes] = encode,
) -> msgspec.Raw:
    """The object, raw. status: in_progress, completed or incomplete; reason: why it is incomplete.

    encode: for an output that has values which only this encodes.
    """
    head = encode(
        {
            "id": f"resp_{stamp.id}",
            "object": "response",
            "created_at": stamp.created,
            "status": status,
            "completed_at": stamp.created if status == "completed" else None,
            "error": None,
            "incomplete_details": None if reason is None else {"reason": reason},
            "model": stamp.model,
            "output": output,
            "usage": usage,
        }
    )
    return msgspec.Raw(head[:-1] + b"," + (asked.settings or NO_SETTINGS) + b"}")


def usage_figures(usage: Usage | None, told: object) -> dict[str, Any] | None:
    """The `usage` of a response; `told` is chat's own, for what `Usage` leaves out. None when the engine told none."""
    if usage is None:
        return None
    prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0, "cache_write_tokens": 0},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": _reasoning(told)},
        "total_tokens": prompt + completion,
    }


def _reasoning(told: object) -> int:
    details = told.get("completion_tokens_details") if isinstance(told, dict) else None
    tokens = details.get("reasoning_tokens") if isinstance(details, dict) else None
    return tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and 0 <= tokens <= MOST_TOKENS else 0

"""Why a response ended, in the words of chat completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.wire.gave_up import gave_up

__all__ = ["CALLS", "finish_reason"]

CALLS = ("function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call")
"""Types of items that ask the client to do something."""
_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}


def finish_reason(response: Mapping[str, Any]) -> str | None:
    """stop, length, tool_calls or content_filter, or why the engine gave up; None for a response that has not ended.

    The status counts, and not the event's name: vLLM ends cut answers with `response.completed`.
    """
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    if isinstance(reason, str):
        if gave_up(reason):
            return reason
        return _REASONS.get(reason, "length")
    status = response.get("status")
    if status == "incomplete":
        return "length"
    if status not in ("completed", None):
        return status if status in ("cancelled", "failed") else None
    output = response.get("output")
    called = (
        item.get("type") in CALLS for item in (output if isinstance(output, list) else ()) if isinstance(item, dict)
    )
    return "tool_calls" if any(called) else "stop"

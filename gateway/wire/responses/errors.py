"""Errors in the dialect of OpenAI's responses."""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec

from gateway.errors import ContextTooLong, GatewayError, NotAdmitted

__all__ = ["NOT_BEGUN", "Begun", "error_event"]


@dataclass(frozen=True, slots=True)
class Begun:
    """What a client has of a stream: how many events, and what they said of the response. created in Unix seconds."""

    events: int
    id: str | None = None
    model: str = ""
    created: int = 0


NOT_BEGUN = Begun(0)


def error_event(err: GatewayError, begun: Begun = NOT_BEGUN) -> bytes:
    """Two server-sent events, as OpenAI sends them; no `response.completed` may come after them.

    The SDKs raise at a top-level `error`; Codex skips that event and reads `response.failed`, whose code tells it
    whether to compact, to wait or to give up.
    """
    error = {"message": err.message, "type": err.type, "param": err.param, "code": err.code}
    told = {**error, "type": "error", "sequence_number": begun.events, "error": error}
    failed = {
        "type": "response.failed",
        "sequence_number": begun.events + 1,
        "response": {
            "id": begun.id or f"resp_{err.decision_id or 'failed'}",
            "object": "response",
            "created_at": begun.created,
            "status": "failed",
            "error": _failure(err),
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": begun.model,
            "output": [],
            "parallel_tool_calls": True,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": None,
        },
    }
    return (
        b"event: error\ndata: "
        + msgspec.json.encode(told)
        + b"\n\nevent: response.failed\ndata: "
        + msgspec.json.encode(failed)
        + b"\n\n"
    )


def _failure(err: GatewayError) -> dict[str, str]:
    # The codes are those that Codex knows (codex-rs, codex-api/src/sse/responses.rs): it compacts on the first, waits
    # as long as the message of the second says, shows that of the third and gives up, and tries again on the last.
    if isinstance(err, ContextTooLong) or err.code == ContextTooLong.code:
        return {"code": "context_length_exceeded", "message": err.message}
    if err.status == 429 or (isinstance(err, NotAdmitted) and err.retry_after is not None):
        message = err.message
        if err.retry_after is not None and "try again in" not in message.lower():
            message = f"{message} Please try again in {max(1, math.ceil(err.retry_after))} s."
        return {"code": "rate_limit_exceeded", "message": message}
    if 400 <= err.status < 499:
        return {"code": "invalid_prompt", "message": err.message}
    return {"code": "server_error", "message": err.message}

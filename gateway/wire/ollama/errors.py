"""Errors in Ollama's dialect.

Its clients take the status line (404: pull the model; 400: the request; 401: sign in; 503: busy) and the text of
`error`, and skip the rest. In a stream there is no status line any more, so the line says it; Ollama's server hands it
on inside itself in the same member (server/routes.go, streamResponse).
"""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import GatewayError

__all__ = ["error_body", "error_line"]


def error_body(err: GatewayError) -> bytes:
    """`{"error": "text"}`, and beside it what is told of errors in every dialect."""
    return msgspec.json.encode(_fields(err))


def error_line(err: GatewayError) -> bytes:
    """The same as one line of a stream, with its `status`; no line with `"done": true` may follow it."""
    return msgspec.json.encode({**_fields(err), "status": err.status}) + b"\n"


def _fields(err: GatewayError) -> dict[str, Any]:
    fields: dict[str, Any] = {"error": err.message, "code": err.code}
    if err.param is not None:
        fields["param"] = err.param
    if err.reason is not None:
        fields["reason"] = str(err.reason)
    if err.decision_id is not None:
        fields["decision_id"] = err.decision_id
    return fields

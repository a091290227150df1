"""Errors in Anthropic's dialect."""

from __future__ import annotations

import msgspec

from gateway.errors import GatewayError

__all__ = ["error_body", "error_event"]

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def error_body(err: GatewayError) -> bytes:
    """`{"type": "error", "error": {"type", "message", ...}}`; what clients do not know of it they skip."""
    error = {"type": _type(err), "message": err.message, "code": err.code, "param": err.param}
    return msgspec.json.encode({"type": "error", "error": error, "request_id": err.decision_id})


def error_event(err: GatewayError) -> bytes:
    """The same as one server-sent event; no `message_stop` may follow it."""
    return b"event: error\ndata: " + error_body(err) + b"\n\n"


def _type(err: GatewayError) -> str:
    if err.status in _TYPES:
        return _TYPES[err.status]
    return "invalid_request_error" if err.status < 500 else "api_error"

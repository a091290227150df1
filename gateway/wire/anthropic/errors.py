"""Errors in Anthropic's dialect.

Agents compact their history when a message says `prompt is too long: N tokens > M maximum`, which are Anthropic's own
words: Claude Code shows both figures from it. (Seen in its answers to a server that said so.)
"""

from __future__ import annotations

import re

import msgspec

from gateway.errors import GatewayError

__all__ = ["error_body", "error_event"]

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_TOO_LONG = "context_length_exceeded"
_LIMIT = re.compile(r"maximum context length is (\d{1,12}) tokens")
_AMOUNT = re.compile(r"(\d{1,12})(?: input)? tokens")


def error_body(err: GatewayError) -> bytes:
    """`{"type": "error", "error": {"type", "message", ...}}`; what clients do not know of it they skip."""
    message = _too_long(err.message) if err.code == _TOO_LONG else err.message
    error = {"type": _type(err), "message": message, "code": err.code, "param": err.param}
    if err.reason is not None:
        error["reason"] = str(err.reason)
    return msgspec.json.encode({"type": "error", "error": error, "request_id": err.decision_id})


def error_event(err: GatewayError) -> bytes:
    """The same as one server-sent event; no `message_stop` may follow it."""
    return b"event: error\ndata: " + error_body(err) + b"\n\n"


def _type(err: GatewayError) -> str:
    if err.status in _TYPES:
        return _TYPES[err.status]
    return "invalid_request_error" if err.status < 500 else "api_error"


def _too_long(message: str) -> str:
    # Our own sentence names the limit first and then the amount.
    if message.startswith("prompt is too long"):
        return message
    limit = _LIMIT.search(message)
    amount = None if limit is None else _AMOUNT.search(message, limit.end())
    if limit is None or amount is None:
        return f"prompt is too long. {message}"
    return f"prompt is too long: {amount[1]} tokens > {limit[1]} maximum. {message}"

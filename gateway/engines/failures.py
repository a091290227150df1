"""Classify an engine's error answer: what all engines have in common."""

from __future__ import annotations

import re

from gateway.engines.adapter import Failure, FailureKind
from gateway.engines.overflow import overflow, overflow_message
from gateway.wire.error_body import upstream_error

__all__ = ["classify"]

_MESSAGE_LENGTH = 1000
"""Characters of an engine's own message that are passed on; some quote the whole request."""

_OUT_OF_MEMORY = re.compile(
    r"out of memory|context size has been exceeded|memory slot|kv.?cache (?:is )?full|\bOOM\b", re.IGNORECASE
)
_LOADING = re.compile(r"loading model|model is loading|still loading|not ready", re.IGNORECASE)
_BUSY = re.compile(r"busy|overload|queue|try again|too many|capacity", re.IGNORECASE)


def classify(status: int, payload: bytes, *, client_words: re.Pattern[str] | None = None) -> Failure:
    """Whose fault the answer is, from its status and body (or an error event's JSON).

    The status that the error itself names counts over `status`, which is 200 for an error inside a stream.
    client_words: messages that are the client's fault whatever the status says.
    """
    error = upstream_error(status, payload)
    if error is None:
        return _unreadable(status)
    code = error.get("code")
    if isinstance(code, int) and 400 <= code < 600:
        status = code
    message = str(error.get("message") or "")[:_MESSAGE_LENGTH]
    too_long = overflow(error)
    if too_long is not None:
        limit, requested = too_long
        return Failure(FailureKind.CONTEXT, overflow_message(limit, requested), limit, requested)
    if client_words is not None and client_words.search(message):
        return Failure(FailureKind.CLIENT, message)
    if _OUT_OF_MEMORY.search(message) and (status >= 500 or status < 400):
        return Failure(FailureKind.MEMORY, "the engine ran out of KV cache or memory", retryable=True)
    return _by_status(status, message)


def _by_status(status: int, message: str) -> Failure:
    if status in (401, 403):
        return Failure(FailureKind.CREDENTIALS, "the engine refused the gateway's key", retryable=True, blame=True)
    if status in (404, 405, 501):
        return Failure(FailureKind.NOT_FOUND, message or "the engine does not serve this", retryable=True)
    if status == 429:
        return Failure(FailureKind.BUSY, "the engine is busy", retryable=True)
    if status == 503 and _LOADING.search(message):
        return Failure(FailureKind.LOADING, "the engine is loading its model", retryable=True)
    if status == 503 and _BUSY.search(message):
        return Failure(FailureKind.BUSY, "the engine is busy", retryable=True)
    if 400 <= status < 500 and status != 408:
        return Failure(FailureKind.CLIENT, message or f"the engine refused the request with status {status}")
    return Failure(FailureKind.SERVER, message or "the engine failed", retryable=True, blame=True)


def _unreadable(status: int) -> Failure:
    # No JSON, or not an error's: a sidecar's text or HTML is not for clients.
    if status in (401, 403, 404, 405, 429, 501):
        return _by_status(status, "")
    if 400 <= status < 500 and status != 408:
        return Failure(FailureKind.CLIENT, f"the engine refused the request with status {status}")
    return Failure(
        FailureKind.SERVER, f"the engine gave an unreadable answer with status {status}", retryable=True, blame=True
    )

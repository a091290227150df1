"""Classify an engine's error answer: what all engines have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gateway.engines.adapter import Failure, FailureKind
from gateway.engines.overflow import overflow, overflow_message
from gateway.wire.error_body import upstream_error

__all__ = ["classify"]

_MESSAGE_LENGTH = 1000
"""Characters of an engine's own message that are passed on; some quote the whole request."""

_OUT_OF_MEMORY = re.compile(
    r"out of memory|context size has been exceeded|memory slot|kv.?cache (?:is )?full|\bOOM\b"
    r"|requires more system memory",
    re.IGNORECASE,
)
_LOADING = re.compile(r"loading model|model is loading|still loading|not ready", re.IGNORECASE)
_BUSY = re.compile(r"busy|overload|queue|try again|too many|capacity", re.IGNORECASE)
_NOT_OFFERED = re.compile(
    # vLLM, Ollama, llama.cpp; OpenAI; SGLang; LM Studio. "tools" and "thinking" are the model's, not the API's.
    r"does not support (?:the )?(?:chat|generat|completion|embedding|rerank|score|transcription|[\w ]{1,40}\bAPI\b)"
    r"|not supported in the v1/|only supported in v1/"
    r"|not appear to be an embedding model"
    r"|unexpected endpoint or method",
    re.IGNORECASE,
)
_MODEL = re.compile(
    r"\bmodel\b.{0,200}(?:not found|not exist|not available)|(?:no such|unknown) model|^model: ",
    re.IGNORECASE | re.DOTALL,
)
_RESOURCE = re.compile(
    r"\b(?:response|batch|conversation)\b.{0,200}not found|no such (?:response|batch|file object)", re.IGNORECASE
)
"""Something that the client named by an id, and that it may well have made on another backend."""
_UNPAID = re.compile(
    r"credit balance is too low|exceeded your current quota|insufficient_quota|spend_limit", re.IGNORECASE
)
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "overloaded_error": 529,
    "api_error": 500,
    "server_error": 500,
}
"""What an error inside a stream is by its `type` or `code`, where it names no status: Anthropic, OpenAI."""
_QUEUED_TOO_LONG = "request_queue_timeout"
"""NInfer's code, with 503 or 504."""


def classify(status: int, payload: bytes, *, client_words: re.Pattern[str] | None = None) -> Failure:
    """Whose fault the answer is, from its status and body (or an error event's JSON).

    The status that the error itself names counts over `status`, which is 200 for an error inside a stream.
    client_words: messages that are the client's fault whatever the status says.
    """
    error = _unwrapped(status, payload)
    if error is None:
        return _unreadable(status)
    status = _status(status, error)
    message = str(error.get("message") or "")[:_MESSAGE_LENGTH]
    too_long = overflow(error)
    if too_long is not None:
        limit, requested, prompt = too_long
        return Failure(FailureKind.CONTEXT, overflow_message(limit, requested), limit, requested, prompt)
    if client_words is not None and client_words.search(message):
        return Failure(FailureKind.CLIENT, message)
    if _OUT_OF_MEMORY.search(message) and (status >= 500 or status < 400):
        return Failure(FailureKind.MEMORY, "the engine ran out of KV cache or memory", retryable=True)
    if status in (402, 429, 400) and _UNPAID.search(f"{message} {error.get('code')} {error.get('details')}"):
        return _by_status(402, "")
    if status == 404 and _RESOURCE.search(message):
        return Failure(FailureKind.CLIENT, message)
    if status <= 500 and _NOT_OFFERED.search(message):  # Ollama says so of embeddings with 500
        return _not_offered(message)
    if status == 404 and (error.get("code") == "model_not_found" or _names_model(error, message)):
        return Failure(FailureKind.NOT_FOUND, message, retryable=True)
    if error.get("code") == _QUEUED_TOO_LONG:
        return _by_status(429, message)
    return _by_status(status, message)


def _unwrapped(status: int, payload: bytes) -> dict[str, Any] | None:
    """The error; the inner one where the message is another server's error as JSON (Ollama over llama.cpp)."""
    error = upstream_error(status, payload)
    if error is not None and str(error.get("message")).startswith('{"error"'):
        return upstream_error(status, str(error["message"]).encode()) or error
    return error


def _status(status: int, error: Mapping[str, Any]) -> int:
    code = error.get("code")
    if isinstance(code, int) and 400 <= code < 600:
        return code
    if status >= 400:
        return status
    names = (code, error.get("type"))
    return next((_STATUSES[name] for name in names if isinstance(name, str) and name in _STATUSES), status)


def _names_model(error: Mapping[str, Any], message: str) -> bool:
    return error.get("param") == "model" or _MODEL.search(message) is not None


def _by_status(status: int, message: str) -> Failure:
    if status in (401, 402, 403):
        return Failure(FailureKind.CREDENTIALS, "the engine refused the gateway's key", retryable=True, blame=True)
    if status in (404, 405, 501):
        return _not_offered(message)
    if status in (429, 529):
        return Failure(FailureKind.BUSY, "the engine is busy", retryable=True)
    if status == 503 and _LOADING.search(message):
        return Failure(FailureKind.LOADING, "the engine is loading its model", retryable=True)
    if status == 503 and _BUSY.search(message):
        return Failure(FailureKind.BUSY, "the engine is busy", retryable=True)
    if 400 <= status < 500 and status != 408:
        return Failure(FailureKind.CLIENT, message or f"the engine refused the request with status {status}")
    return Failure(FailureKind.SERVER, message or "the engine failed", retryable=True, blame=True)


def _not_offered(message: str) -> Failure:
    return Failure(FailureKind.NOT_OFFERED, message or "the engine does not serve this", retryable=True)


def _unreadable(status: int) -> Failure:
    # No JSON, or not an error's: a sidecar's text or HTML is not for clients.
    if status in (401, 402, 403, 404, 405, 429, 501, 529):
        return _by_status(status, "")
    if 400 <= status < 500 and status != 408:
        return Failure(FailureKind.CLIENT, f"the engine refused the request with status {status}")
    return Failure(
        FailureKind.SERVER, f"the engine gave an unreadable answer with status {status}", retryable=True, blame=True
    )

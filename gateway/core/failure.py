"""How an attempt can fail: the classes that retries, the breaker and the canary tell apart."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["BLAMELESS", "FailureKind"]


class FailureKind(StrEnum):
    """What went wrong with one attempt. Engines' adapters map statuses and bodies to these."""

    CONNECT = "connect"
    """The connection was never made: no work was done."""
    BUSY = "busy"
    """The engine refused for now (429, 503 with a queue or slot message)."""
    LOADING = "loading"
    """The engine is loading its model; neither a failure nor an answer."""
    CLIENT = "client"
    """The request's own fault: 400, 413, 422."""
    CONTEXT = "context"
    """The engine counted more tokens than its window holds."""
    CREDENTIALS = "credentials"
    """401, 403 or 404 on our own key or model name: the backend is misconfigured."""
    NOT_FOUND = "not_found"
    """The engine has no such model or path: it serves something else than was thought."""
    SERVER = "server"
    """A 5xx before the first byte."""
    MEMORY = "memory"
    """The engine said that it ran out of memory or KV blocks."""
    FIRST_TOKEN = "first_token"
    """The request was accepted and nothing came within the limit."""
    TOKEN_GAP = "token_gap"
    """The answer stopped moving for longer than the limit."""
    BROKEN = "broken"
    """The connection ended after the request was sent and before the terminal event."""
    CANCELLED = "cancelled"
    """The client left; nobody's fault."""


BLAMELESS = frozenset((FailureKind.CLIENT, FailureKind.CONTEXT, FailureKind.CANCELLED))
"""Failures that say nothing about the backend."""

"""How an attempt can fail: the classes that retries, the breaker and the canary tell apart."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["BLAMELESS", "SENTENCES", "FailureKind"]


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
    """The engine has no such model: it serves something else than was thought."""
    NOT_OFFERED = "not_offered"
    """The engine does not speak the API that was called, or not for this model: nothing is wrong with it."""
    NOT_CLEARED = "not_cleared"
    """A changed file took away its clearance for this request's data after it had been chosen; nothing was sent."""
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
    GARBAGE = "garbage"
    """The answer was one character over and over."""
    CANCELLED = "cancelled"
    """The client left; nobody's fault."""


BLAMELESS = frozenset(
    (FailureKind.CLIENT, FailureKind.CONTEXT, FailureKind.NOT_OFFERED, FailureKind.NOT_CLEARED, FailureKind.CANCELLED)
)
"""Failures that say nothing about the backend."""

SENTENCES: dict[FailureKind, str] = {
    FailureKind.CONNECT: "could not be reached",
    FailureKind.BUSY: "was busy and turned it away",
    FailureKind.LOADING: "was still loading its model",
    FailureKind.CLIENT: "found fault with the request itself",
    FailureKind.CONTEXT: "counted more tokens than its window holds",
    FailureKind.CREDENTIALS: "refused the gateway's own key",
    FailureKind.NOT_FOUND: "does not serve this model",
    FailureKind.NOT_OFFERED: "does not speak the API that was called",
    FailureKind.NOT_CLEARED: "may not see this request's data any more",
    FailureKind.SERVER: "answered with an error of its own",
    FailureKind.MEMORY: "ran out of memory or KV cache",
    FailureKind.FIRST_TOKEN: "gave no token within the limit",
    FailureKind.TOKEN_GAP: "stopped in the middle of its answer",
    FailureKind.BROKEN: "broke the connection before its answer was whole",
    FailureKind.GARBAGE: "answered with one character over and over",
    FailureKind.CANCELLED: "was let go, since the client left",
}
"""One sentence fragment a kind, readable after a backend's name."""

"""Edits of a request body that all engines share."""

from __future__ import annotations

import msgspec

from gateway.wire.chat_request import ChatRequest
from gateway.wire.splice import splice

__all__ = ["shared_edits", "with_usage"]

BUDGETS = ("max_completion_tokens", "max_tokens", "n_predict")
"""The members that say how many tokens to generate; engines differ in which of two wins."""


def shared_edits(req: ChatRequest, served_as: str, stream: bool, max_tokens: int | None) -> dict[str, bytes | None]:
    """The engine's model name, whether to stream, and the output budget under the name that the client used.

    Of two budgets both are set, so that neither is more than what was decided upon. No answer must be longer than that
    either.
    """
    edits: dict[str, bytes | None] = {}
    if served_as != req.model:
        edits["model"] = msgspec.json.encode(served_as)
    if stream != req.stream:
        edits["stream"] = b"true" if stream else b"false"
    named = [name for name in req.budgets if name in BUDGETS[:2]]
    budget = req.max_tokens if max_tokens is None and len(named) > 1 else max_tokens
    if budget is not None:
        edits.update(dict.fromkeys(BUDGETS))
        edits.update(dict.fromkeys(named or ("max_tokens",), str(budget).encode()))
        edits.update({name: str(budget).encode() for name, least in req.floors if least > budget})
    return edits


def with_usage(req: ChatRequest) -> bytes:
    """`stream_options` as the client sent it, with `include_usage` on."""
    options = req.stream_options
    return splice(options if options and options != b"null" else b"{}", {"include_usage": b"true"})

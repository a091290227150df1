"""Edits of a request body that all engines share."""

from __future__ import annotations

import msgspec

from gateway.wire.chat_request import ChatRequest
from gateway.wire.splice import splice

__all__ = ["shared_edits", "with_usage"]

BUDGETS = ("max_completion_tokens", "max_tokens", "n_predict")
"""The members that say how many tokens to generate; engines differ in which of two wins, so one is kept."""


def shared_edits(req: ChatRequest, served_as: str, stream: bool, max_tokens: int | None) -> dict[str, bytes | None]:
    """The engine's model name, whether to stream, and the output budget under the name that the client used."""
    edits: dict[str, bytes | None] = {}
    if served_as != req.model:
        edits["model"] = msgspec.json.encode(served_as)
    if stream != req.stream:
        edits["stream"] = b"true" if stream else b"false"
    if max_tokens is not None:
        field = req.max_tokens_field if req.max_tokens_field in BUDGETS[:2] else "max_tokens"
        edits.update(dict.fromkeys(BUDGETS))
        edits[field] = str(max_tokens).encode()
    return edits


def with_usage(req: ChatRequest) -> bytes:
    """`stream_options` as the client sent it, with `include_usage` on."""
    options = req.stream_options
    return splice(options if options and options != b"null" else b"{}", {"include_usage": b"true"})

"""What of a Messages body changes on its way to an engine that speaks messages."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.wire.edits import edits_of

__all__ = ["edits"]


def edits(served_as: str | None, stream: bool | None, max_tokens: int | None) -> Mapping[str, bytes | None]:
    """Top-level members to splice; None leaves one as it is.

    served_as: the engine's name for the model. stream: how it is asked. max_tokens: the output budget in tokens.
    """
    found = edits_of(served_as, stream)
    if max_tokens is not None:
        found["max_tokens"] = b"%d" % max_tokens
    return found

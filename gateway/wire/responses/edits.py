"""What of a Responses body changes on its way to an engine that speaks responses."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

__all__ = ["edits"]


def edits(served_as: str | None, stream: bool | None, max_tokens: int | None) -> Mapping[str, bytes | None]:
    """Top-level members to splice; None leaves one as it is.

    served_as: the engine's name for the model. stream: how it is asked. max_tokens: the output budget in tokens.
    """
    found: dict[str, bytes | None] = {}
    if served_as is not None:
        found["model"] = msgspec.json.encode(served_as)
    if stream is not None:
        found["stream"] = b"true" if stream else b"false"
    if max_tokens is not None:
        found["max_output_tokens"] = b"%d" % max_tokens
    return found

"""What of a body changes at the top level on its way to an engine that speaks its dialect."""

from __future__ import annotations

import msgspec

__all__ = ["edits_of"]


def edits_of(served_as: str | None, stream: bool | None) -> dict[str, bytes | None]:
    """Members to splice, which every dialect calls the same; None leaves one as it is.

    served_as: the engine's name for the model. stream: how it is asked.
    """
    found: dict[str, bytes | None] = {}
    if served_as is not None:
        found["model"] = msgspec.json.encode(served_as)
    if stream is not None:
        found["stream"] = b"true" if stream else b"false"
    return found

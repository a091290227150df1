"""What of an Ollama body changes on its way to an engine that speaks Ollama's own API."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.edits import edits_of
from gateway.wire.malformed import decoded
from gateway.wire.raw_members import NOTHING, is_null
from gateway.wire.splice import splice

__all__ = ["edits"]


class _Body(msgspec.Struct):
    options: msgspec.Raw = NOTHING


_BODY = msgspec.json.Decoder(_Body)


def edits(
    body: bytes, served_as: str | None, stream: bool | None, max_tokens: int | None
) -> Mapping[str, bytes | None]:
    """Top-level members to splice; None leaves one as it is. For chat and generate.

    served_as: the engine's name for the model. stream: how it is asked. max_tokens: the output budget in tokens; it
    stands in `options.num_predict`, so `options` is set whole, and all in it but that one is what the client wrote.
    Raises MalformedRequest when `options` is no object.
    """
    found = edits_of(served_as, stream)
    if max_tokens is not None:
        options = decoded(_BODY, body).options
        found["options"] = _with_budget(b"{}" if is_null(options) else bytes(options), max_tokens)
    return found


def _with_budget(options: bytes, max_tokens: int) -> bytes:
    if not options.startswith(b"{"):
        raise MalformedRequest("options must be an object", param="options")
    return splice(options, {"num_predict": b"%d" % max(max_tokens, 1)})  # 0 is no limit there

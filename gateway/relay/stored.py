"""Answers that an engine keeps: fetched, cancelled and deleted there, for the client that they were made for."""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from gateway.core.kept_answers import Kept
from gateway.errors import BadStatus, NotFound, UpstreamError
from gateway.relay.call import Call
from gateway.relay.downstream import Downstream
from gateway.relay.errand import Upstream
from gateway.relay.meter import Meter
from gateway.relay.passthrough import relay_bytes
from gateway.wire.top_level import TopLevel

__all__ = ["not_kept", "relay_stored"]


def not_kept(answer: str) -> NotFound:
    """What a client is told of an answer that nobody keeps, or that is not its own."""
    shown = answer if len(answer) <= 100 else answer[:97] + "..."
    return NotFound(f"No response '{shown}' is kept here.", param="response_id", code="response_not_found")


async def relay_stored(upstream: Upstream, kept: Kept, method: str, answer: str, action: str, down: Downstream) -> None:
    """Ask the keeper and pass on what it says; `action` is what follows the id in the path, with its slash, or empty.

    Raises NotFound where the engine does not keep it, or has no such call, and UpstreamError when it fails.
    """
    pool = upstream.pool
    headers = [("Accept", "application/json")]
    if upstream.key:
        headers.append(upstream.engine.credential(upstream.key))
    target = f"{pool.base}{upstream.engine.path('responses')}/{quote(answer, safe='')}{action}"
    call = Call(method, target, pool.authority, headers)
    named = TopLevel({"model": msgspec.json.encode(kept.model)})
    try:
        await relay_bytes(pool, call, down, Meter(), upstream.limits, pool.wheel, named)
    except BadStatus as error:
        if error.status in (404, 405, 501):
            raise not_kept(answer) from error
        raise UpstreamError("The backend that keeps this response failed on it.") from error

"""One request of which no tokens are decoded one by one: embeddings, scores, transcripts, pictures.

Its answer passes by in pieces, however long it is; only the model's name in it is changed and its usage read.
"""

from __future__ import annotations

import msgspec

from gateway.apart import Apart
from gateway.errors import BadStatus
from gateway.relay.collect import relay_whole, show_whole
from gateway.relay.downstream import Downstream
from gateway.relay.errand import Outbound
from gateway.relay.limits import Limits
from gateway.relay.meter import Meter
from gateway.relay.passthrough import relay_bytes
from gateway.relay.upstream import Pool
from gateway.wire.finishing import Finishing, finished
from gateway.wire.surfaces import SURFACES, Kind
from gateway.wire.top_level import TopLevel
from gateway.wire.usage import Usage, usage_of

__all__ = ["relay_plain"]

INLINE_BYTES = 16 * 1024
"""Answers up to this size are translated on the loop: numbers take longer than text."""


async def relay_plain(
    pool: Pool, out: Outbound, down: Downstream, meter: Meter, limits: Limits, apart: Apart
) -> Usage | None:
    """Send the request and relay its answer; returns what the answer says of its cost.

    Raises as `relay_bytes` does, and BadStatus or StreamBroken for an answer that can't be translated.
    """
    errand = out.errand
    if out.translation is None:
        alias = {} if errand.alias is None else {"model": msgspec.json.encode(errand.alias)}
        passing = TopLevel(alias, ("usage",))
        json = SURFACES[out.spoken].kind is Kind.PLAIN and out.spoken != "speech"
        await relay_bytes(pool, out.call, down, meter, limits, pool.wheel, passing, json=json)
        return _usage(passing.captured.get("usage"))
    whole = await relay_whole(pool, out.call, limits, meter, pool.wheel, stream=False, hold=errand.hold)
    if not whole.body:
        raise BadStatus("the engine answered with nothing", status=502)
    told = Finishing(errand.chat, out.spoken, None, out.context, errand.stamp)
    _, body = await apart.call(finished, told, whole.body, inline=INLINE_BYTES)
    errand.hold.settles(answer=len(body))
    errand.hold.worked()
    show_whole(down, whole, body)
    return None


def _usage(raw: bytes | None) -> Usage | None:
    if raw is None:
        return None
    try:
        return usage_of({"usage": msgspec.json.decode(raw)})
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None

"""Questions to engines beside their generations: one request, one whole answer, within a time."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.engines.adapter import Answer, Engine, Probe
from gateway.errors import BadStatus, UpstreamError
from gateway.relay.call import Call
from gateway.relay.collect import relay_whole
from gateway.relay.errand import Upstream
from gateway.relay.limits import Limits
from gateway.relay.meter import Meter

__all__ = ["Questions"]

_ANSWER_BYTES = 32 << 20
"""A list of a million tokens is 8 MB."""


class Questions:
    """Asks the upstreams, by backend name, over the connections that their requests use."""

    def __init__(self, upstreams: Mapping[str, Upstream]) -> None:
        self._upstreams = upstreams

    def engine(self, backend: str) -> Engine | None:
        """The adapter of that backend; None when it is gone."""
        upstream = self._upstreams.get(backend)
        return upstream.engine if upstream is not None else None

    async def ask(self, backend: str, question: Probe, within: float) -> Answer | None:
        """What it answered within so many seconds, whatever the status; None when it did not answer, or is gone."""
        upstream = self._upstreams.get(backend)
        if upstream is None:
            return None
        pool = upstream.pool
        headers = [("Content-Type", "application/json"), ("Accept", "application/json"), *question.headers]
        if upstream.key:
            headers.append(upstream.engine.credential(upstream.key))
        call = Call(question.method, pool.base + question.path, pool.authority, headers, question.body)
        limits = Limits(connect_s=within, first_token_s=within, token_gap_s=within, answer_bytes=_ANSWER_BYTES)
        try:
            whole = await relay_whole(pool, call, limits, Meter(), pool.wheel, stream=False)
        except BadStatus as error:
            return Answer(error.status, {}, error.payload)
        except UpstreamError:
            return None
        return Answer(whole.status, {}, whole.body)

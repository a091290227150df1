"""Answers that engines keep: gone on from, fetched, cancelled and deleted there, for the client that they are for."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import msgspec

from gateway.core.kept_answers import Kept, KeptAnswers
from gateway.core.lease import Lease
from gateway.errors import BadStatus, NotFound, UpstreamError
from gateway.relay.call import Call
from gateway.relay.downstream import Downstream
from gateway.relay.errand import Upstream
from gateway.relay.meter import Meter
from gateway.relay.passthrough import relay_bytes
from gateway.wire.refusal import previous_not_found
from gateway.wire.top_level import TopLevel

__all__ = ["StoredAnswers"]


class StoredAnswers:
    """What this process has seen kept, and the way to it. `upstreams` by backend name, as the pipeline has them."""

    def __init__(self, upstreams: Mapping[str, Upstream]) -> None:
        self._upstreams = upstreams
        self._kept = KeptAnswers()

    def note(self, answer: str, lease: Lease, model: str) -> None:
        """An engine has answered and may keep the answer; `model` is the name that the client asked for."""
        self._kept.note(answer, Kept(lease.backend, lease.request.client, model))

    def keeper(self, answer: str | None, client: str) -> str | None:
        """The backend on which a request must go on; None where it goes on from nothing.

        Raises MalformedRequest for another client's answer, and for one of which nobody knows whose it is, as after a
        restart: the backends' own keys are shared by all clients.
        """
        if answer is None:
            return None
        kept = self._kept.find(answer)
        if kept is None or kept.client != client:
            raise previous_not_found()
        return kept.backend

    async def relay(self, client: str, method: str, answer: str, action: str, down: Downstream) -> None:
        """Ask the keeper and pass on what it says; `action` is what follows the id in the path, with its slash, or
        empty.

        Raises NotFound where nobody keeps it for this client, or the engine has no such call, and UpstreamError when
        the engine fails.
        """
        kept = self._kept.find(answer)
        upstream = self._upstreams.get(kept.backend) if kept is not None else None
        if kept is None or upstream is None or kept.client != client:
            raise _not_kept(answer)
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
                raise _not_kept(answer) from error
            raise UpstreamError("The backend that keeps this response failed on it.") from error
        if method == "DELETE":
            self._kept.forget(answer)


def _not_kept(answer: str) -> NotFound:
    shown = answer if len(answer) <= 100 else answer[:97] + "..."
    return NotFound(f"No response '{shown}' is kept here.", param="response_id", code="response_not_found")

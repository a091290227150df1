"""From a client's body to what one engine is sent: a few declared edits, every other byte as it came."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gateway.core.lease import Lease
from gateway.engines.adapter import Engine
from gateway.relay.call import Call
from gateway.relay.limits import Limits
from gateway.relay.upstream import Pool
from gateway.wire.chat_request import ChatRequest
from gateway.wire.members import Member, members
from gateway.wire.splice import pieces

__all__ = ["Errand", "Outbound", "Upstream", "errand_of", "prepare"]

TARGETS = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}
NOT_THE_CALLERS = dict.fromkeys(("api_base", "api_key", "base_url", "extra_body", "extra_headers"))
"""Members in which some proxies and clients name an address or a credential: no caller decides where a key is sent."""
BUDGETS = frozenset(("max_tokens", "max_completion_tokens", "n_predict"))
"""Members of which one is kept: leaving the others out takes nothing away."""
JOINED_BYTES = 128 * 1024
"""Bodies up to this size are joined, and leave in one write with the head; longer ones are sent from where they lie."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """One backend as the relay sees it: where it is, how to talk to it, how long to wait for it.

    `limits.first_token_s` of infinity means that nothing is set: then the prediction decides. The key never shows in
    a repr.
    """

    name: str
    pool: Pool
    engine: Engine
    limits: Limits
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Errand:
    """What to send. `alias` is the name to show in the answer in place of the engine's own, None to leave that.

    `id`: the lease's, which no other attempt has that may run. `max_tokens` is the output budget to set, None to leave
    the client's. Predicted times in seconds.
    """

    id: str
    chat: ChatRequest
    body: bytes = field(repr=False)
    served_as: str
    alias: str | None = None
    max_tokens: int | None = None
    predicted_ttft: float = 0.0
    predicted_tpot: float = 0.0
    predicted_output: int = 0


@dataclass(frozen=True, slots=True)
class Outbound:
    """An errand made ready for one engine. `stream`: the engine is asked to stream, whatever the client asked for.

    `dropped`: members of the client's body that this engine does not get to see.
    """

    errand: Errand
    call: Call
    stream: bool
    dropped: tuple[str, ...] = ()


def errand_of(lease: Lease, chat: ChatRequest, body: bytes) -> Errand:
    """What to send under this lease: the client's body, and what the decision changes about it."""
    decision, footprint = lease.decision, lease.decision.footprint
    served_as = decision.served_as or chat.model
    # A fallback is shown under its own name; else the client reads back the name it asked for.
    shown = decision.model if decision.tier > 0 else chat.model
    return Errand(
        id=lease.id,
        chat=chat,
        body=body,
        served_as=served_as,
        alias=shown if shown != served_as else None,
        max_tokens=footprint.max_tokens if footprint is not None else None,
        predicted_ttft=decision.predicted_ttft or 0.0,
        predicted_tpot=decision.predicted_tpot or 0.0,
        predicted_output=footprint.output if footprint is not None else 0,
    )


async def prepare(upstream: Upstream, errand: Errand) -> Outbound:
    """Edit the body for this engine; a long one is not copied. Raises MalformedRequest when it can't be edited."""
    chat, engine, pool = errand.chat, upstream.engine, upstream.pool
    stream = chat.stream or engine.streams_upstream(chat)
    declared = engine.edits(chat, served_as=errand.served_as, stream=stream, max_tokens=errand.max_tokens)
    edits: dict[str, bytes | None] = {**NOT_THE_CALLERS, **declared}
    headers = [("Content-Type", "application/json"), ("Accept", "text/event-stream" if stream else "application/json")]
    # The lease's id: one that a caller chose could collide with another's inside the engine. It holds the decision's,
    # so an engine's log can be read beside ours.
    headers += engine.headers(f"kvgate-{errand.id}").items()
    if upstream.key:
        headers.append(("Authorization", f"Bearer {upstream.key}"))
    target = pool.base + TARGETS[chat.surface]
    found = chat.members or members(errand.body)
    body = pieces(errand.body, edits, found)
    whole = b"".join(body) if len(errand.body) <= JOINED_BYTES else body
    return Outbound(errand, Call("POST", target, pool.authority, headers, whole), stream, _dropped(found, edits))


def _dropped(found: Iterable[Member], edits: Mapping[str, bytes | None]) -> tuple[str, ...]:
    """The members that are left out, by name."""
    present = {member.key for member in found}
    return tuple(name for name, value in edits.items() if value is None and name in present and name not in BUDGETS)

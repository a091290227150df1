"""From a client's body to what one engine is sent: a few declared edits, every other byte as it came.

An engine that does not speak what the client called is asked in a surface that it speaks, in translation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from gateway.apart import Apart
from gateway.core.backend import Offer
from gateway.core.lease import Lease
from gateway.core.memory import Hold
from gateway.engines.adapter import Engine
from gateway.errors import NotSpoken
from gateway.relay.call import Call
from gateway.relay.limits import Limits
from gateway.relay.upstream import Pool
from gateway.wire.chat_request import ChatRequest
from gateway.wire.inbound import Inbound
from gateway.wire.members import Member
from gateway.wire.multipart import form, with_fields
from gateway.wire.resuming import after_text, after_tokens, floor_edits
from gateway.wire.rewriting import Rewriting, Rewritten, rewritten
from gateway.wire.splice import pieces
from gateway.wire.surfaces import SURFACES, Kind
from gateway.wire.translation import Stamp, Translation
from gateway.wire.translations import spoken_for, translation

__all__ = ["RESUMABLE", "Errand", "GoesOn", "Outbound", "Upstream", "errand_of", "prepare"]

NOT_THE_CALLERS = dict.fromkeys(("api_base", "api_key", "base_url", "extra_body", "extra_headers"))
"""Members in which some proxies and clients name an address or a credential: no caller decides where a key is sent."""
BUDGETS = frozenset(("max_tokens", "max_completion_tokens", "n_predict"))
"""Members of which one is kept: leaving the others out takes nothing away."""
JOINED_BYTES = 128 * 1024
"""Bodies up to this size are joined, and leave in one write with the head; longer ones are sent from where they lie."""
RESUMABLE = ("chat", "completions")
"""What an engine can be asked in to go on with an answer."""
INLINE_BYTES = 48 * 1024
"""Bodies up to this size are made ready on the loop, in well under a millisecond; longer ones in a thread."""


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
class GoesOn:
    """How one engine is asked for the rest of an answer in chunks of `surface`, of which it is given `given` tokens.

    As a message left open with `text`, or as a text completion of the tokens `prompt` (a JSON array). `tail`: what it
    will say again.
    """

    surface: str
    given: int
    text: str = field(default="", repr=False)
    tail: str = field(default="", repr=False)
    prompt: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Errand:
    """What to send. `alias` is the name to show in the answer in place of the engine's own, None to leave that.

    `max_tokens` is the output budget to set, None to leave the client's. Predicted times in seconds. `surfaces`: what
    the engine speaks, None when it is not known. `stamp` marks answers that are written here.
    """

    id: str
    chat: ChatRequest
    inbound: Inbound = field(repr=False)
    served_as: str
    stamp: Stamp
    surfaces: frozenset[str] | None = None
    alias: str | None = None
    max_tokens: int | None = None
    predicted_ttft: float = 0.0
    predicted_tpot: float = 0.0
    predicted_output: int = 0
    may_break_off: bool = False
    """If its answer breaks off, another engine may go on."""
    goes_on: GoesOn | None = None
    """Where an answer that broke off goes on; None: it begins."""
    slot: int | None = None
    """The engine's slot that it is to use; None: any."""

    @property
    def body(self) -> bytes:
        """The client's body, until it is let go."""
        return self.inbound.body

    @property
    def hold(self) -> Hold:
        """What it is charged for in memory."""
        return self.inbound.hold


@dataclass(frozen=True, slots=True)
class Outbound:
    """An errand made ready for one engine. `stream`: the engine is asked to stream, whatever the client asked for.

    `spoken` is the surface it is asked in, `translation` (with its `context`) the way back to the client's, None where
    that is the same. `dropped`: members of the client's body that this engine does not get to see.
    """

    errand: Errand
    call: Call
    stream: bool
    spoken: str
    translation: Translation | None = None
    context: object = None
    dropped: tuple[str, ...] = ()
    ids: bool = False
    """The engine is asked for token ids, which the client is not to see."""


def errand_of(
    lease: Lease, chat: ChatRequest, inbound: Inbound, offer: Offer | None, now: int, goes_on: GoesOn | None = None
) -> Errand:
    """What to send under this lease: the client's body, and what the decision changes about it.

    `offer` is what the backend offers of the model now; `now` in Unix seconds, for the answer; `goes_on` as in Errand.
    """
    decision, footprint = lease.decision, lease.decision.footprint
    budget = footprint.max_tokens if footprint is not None else None
    if budget is None and goes_on is not None:
        budget = _left(lease)
    served_as = decision.served_as or chat.model
    # A fallback is shown under its own name; else the client reads back the name it asked for.
    shown = decision.model if decision.tier > 0 else chat.model
    return Errand(
        id=lease.id,
        chat=chat,
        inbound=inbound,
        served_as=served_as,
        stamp=Stamp("".join(filter(str.isalnum, lease.id)), now, shown or served_as, chat.stream),
        surfaces=None if offer is None else offer.surfaces,
        alias=shown if shown and shown != served_as else None,
        max_tokens=budget,
        predicted_ttft=decision.predicted_ttft or 0.0,
        predicted_tpot=decision.predicted_tpot or 0.0,
        predicted_output=footprint.output if footprint is not None else 0,
        may_break_off=lease.request.resumes,
        goes_on=goes_on,
        slot=lease.slot,
    )


def _left(lease: Lease) -> int:
    """Tokens that the rest of an answer may have: of the client's own budget, else of the window."""
    footprint, most = lease.decision.footprint, lease.request.max_tokens
    room = lease.offer.window - (footprint.prompt if footprint is not None else 0)
    return max(1, room if most is None else min(most, room))


async def prepare(upstream: Upstream, errand: Errand, apart: Apart) -> Outbound:
    """Edit the body for this engine; a long one is not copied, and looked through in a thread or a process of its own.

    Raises MalformedRequest when it can't be edited, NotSpoken when this engine has no way to be asked for it, NoRoom.
    """
    chat, body = errand.chat, errand.body
    surfaces = _salted(upstream.engine, errand)
    spoken = spoken_for(chat, surfaces) if errand.goes_on is None else errand.goes_on.surface
    if spoken is None:
        raise NotSpoken(f"the engine does not offer {SURFACES[chat.surface].noun}")
    form = SURFACES[spoken].kind is Kind.FORM
    made = b""
    if form or (chat.members and spoken == chat.surface):  # where they lie was found out when it was measured
        found = Rewritten(chat.members)
    else:
        asked = Rewriting(chat.surface, spoken, *_asked(upstream.engine, errand, spoken))
        found, made = await apart.call(rewritten, asked, body, inline=INLINE_BYTES)
    if found.lost:
        raise NotSpoken(f"in translation there is no place for: {', '.join(found.lost[:5])}")
    errand.hold.settles(copy=len(made))
    errand.hold.worked()
    return _outbound(upstream, errand, spoken, found, made or body)


def _salted(engine: Engine, errand: Errand) -> frozenset[str] | None:
    """What the engine may be asked in: for an isolated client only what takes a salt, if anything does."""
    salted = engine.traits.salted
    if errand.inbound.client.salt is None or not salted or SURFACES[errand.chat.surface].kind is not Kind.GENERATION:
        return errand.surfaces
    return (engine.traits.surfaces if errand.surfaces is None else errand.surfaces) & salted


def _asked(engine: Engine, errand: Errand, spoken: str) -> tuple[str | None, bool | None, int | None]:
    """The model's name, whether to stream and the budget, as far as they differ from what the client wrote."""
    chat, stream = errand.chat, _streams(engine, errand.chat, spoken)
    name = errand.served_as if errand.served_as != chat.model or spoken != chat.surface else None
    return name, stream if stream != chat.stream else None, errand.max_tokens


def _streams(engine: Engine, chat: ChatRequest, spoken: str) -> bool:
    return chat.stream or (SURFACES[spoken].kind is Kind.GENERATION and engine.streams_upstream(chat))


def _outbound(upstream: Upstream, errand: Errand, spoken: str, found: Rewritten, body: bytes) -> Outbound:
    chat, engine, pool = errand.chat, upstream.engine, upstream.pool
    stream = _streams(engine, chat, spoken)
    sent: Sequence[bytes | memoryview]
    dropped: tuple[str, ...] = ()
    ids = False
    if SURFACES[spoken].kind is Kind.FORM:
        sent = _form(body, errand)
    else:
        edits = {**NOT_THE_CALLERS, **_edits(engine, errand, spoken, stream, found)}
        dropped = _dropped(found.members, edits)  # also what is set to a value of ours below
        if errand.goes_on is not None:
            edits |= _going_on(errand, errand.goes_on, body, found)
        if errand.slot is not None and spoken in RESUMABLE:
            edits["id_slot"] = str(errand.slot).encode()
        salt = errand.inbound.client.salt
        if salt is not None and spoken in engine.traits.salted:
            edits["cache_salt"] = msgspec.json.encode(salt)
        ids = _tells_ids(engine, errand, spoken, found)
        if ids:
            edits["return_token_ids"] = b"true"
        sent = pieces(body, edits, found.members)
    whole = b"".join(sent) if len(body) <= JOINED_BYTES else tuple(sent)
    asked = "completions" if errand.goes_on is not None and errand.goes_on.prompt is not None else spoken
    headers = _headers(upstream, errand, spoken, stream)
    call = Call("POST", pool.base + engine.path(asked), pool.authority, headers, whole)
    over = translation(chat.surface, spoken) if spoken != chat.surface else None
    return Outbound(errand, call, stream, spoken, over, found.context, dropped, ids)


def _edits(engine: Engine, errand: Errand, spoken: str, stream: bool, found: Rewritten) -> Mapping[str, bytes | None]:
    chat = errand.chat
    if spoken in ("chat", "completions"):
        return engine.edits(chat, served_as=errand.served_as, stream=stream, max_tokens=errand.max_tokens)
    own = found.edits
    if own is None:  # one that names no model has none to rename
        name, _, _ = _asked(engine, errand, spoken)
        own = {"model": msgspec.json.encode(name)} if name is not None and chat.model else {}
    return {**engine.surface_edits(spoken), **own}


def _tells_ids(engine: Engine, errand: Errand, spoken: str, found: Rewritten) -> bool:
    """Whether the engine is asked for token ids, so that another can go on exactly there."""
    if not errand.may_break_off or engine.traits.resumes != "ids" or spoken != errand.chat.surface:
        return False
    return not errand.chat.tools and all(member.key != "return_token_ids" for member in found.members)


def _going_on(errand: Errand, goes_on: GoesOn, body: bytes, found: Rewritten) -> Mapping[str, bytes | None]:
    """What makes the answer go on from what the client has. Raises NotSpoken where the prompt has no place for that."""
    left = errand.max_tokens
    if goes_on.prompt is not None:
        edits: dict[str, bytes | None] | None = after_tokens(goes_on.prompt, left)
    else:
        edits = after_text(goes_on.surface, body, found.members, goes_on.text)
    if edits is None:
        raise NotSpoken("its prompt leaves no place for an answer to go on from")
    return edits | floor_edits(errand.chat, goes_on.given, left)


def _form(body: bytes, errand: Errand) -> list[bytes | memoryview]:
    """A form with the engine's name for the model, and without fields that are not the caller's."""
    found = form(body, errand.inbound.content_type)
    edits: dict[str, str | None] = {name: None for name in NOT_THE_CALLERS if found.part(name) is not None}
    if errand.chat.model and errand.served_as != errand.chat.model:
        edits["model"] = errand.served_as
    return with_fields(body, found, edits) if edits else [body]


def _headers(upstream: Upstream, errand: Errand, spoken: str, stream: bool) -> list[tuple[str, str]]:
    engine = upstream.engine
    form = SURFACES[spoken].kind is Kind.FORM
    headers = [
        ("Content-Type", errand.inbound.content_type if form else "application/json"),
        ("Accept", "text/event-stream" if stream else "*/*" if form else "application/json"),
        # The lease's id is fresh for each attempt: one that a caller chose could collide with another's in the engine.
        *engine.headers(errand.id).items(),
        *errand.inbound.forward,
    ]
    given = {name.lower() for name, _ in headers}
    headers += [pair for pair in engine.surface_headers(spoken).items() if pair[0].lower() not in given]
    if upstream.key:
        headers.append(engine.credential(upstream.key))
    return headers


def _dropped(found: Iterable[Member], edits: Mapping[str, bytes | None]) -> tuple[str, ...]:
    """The members that are left out, by name."""
    present = {member.key for member in found}
    return tuple(name for name, value in edits.items() if value is None and name in present and name not in BUDGETS)

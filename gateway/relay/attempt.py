"""One attempt at one engine: sent in the way it is best asked, answered in the way the client asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from gateway.apart import Apart
from gateway.core.failure import FailureKind
from gateway.core.patience import first_token_limit, whole_answer_limit
from gateway.engines.adapter import Failure
from gateway.errors import (
    AnswerTooLarge,
    BadStatus,
    ConnectFailed,
    NoRoom,
    NotCleared,
    NotSpoken,
    TimedOut,
    UpstreamError,
)
from gateway.relay.breaking import Breaking
from gateway.relay.collect import relay_whole, show_whole
from gateway.relay.downstream import Downstream
from gateway.relay.errand import Errand, Outbound, Upstream
from gateway.relay.limits import Hooks, Limits
from gateway.relay.meter import Meter
from gateway.relay.plain import relay_plain
from gateway.relay.refusal import not_an_answer
from gateway.relay.stream import relay_stream
from gateway.wire.finishing import Finishing, finished
from gateway.wire.formats import FORMATS
from gateway.wire.stream_view import StreamView
from gateway.wire.surfaces import SURFACES, Kind
from gateway.wire.translated_stream import TranslatedStream
from gateway.wire.usage import Usage
from gateway.wire.usage import credible as usage_credible

__all__ = ["Outcome", "attempt", "failure_of"]

INLINE_BYTES = 256 * 1024
"""Whole answers up to this size are read on the loop (well under a millisecond); longer ones in a thread, or apart."""
HAS_MEDIA = frozenset(("vision", "audio"))
LONG_ANSWER = 4096
"""Tokens that an answer without a budget is given time for."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attempt that ended well brought. kept: the id under which the engine may keep the answer."""

    usage: Usage | None
    finish_reason: str | None
    kept: str | None = None


async def attempt(
    upstream: Upstream,
    out: Outbound,
    down: Downstream,
    meter: Meter,
    hooks: Hooks,
    apart: Apart,
    breaking: Breaking | None = None,
) -> Outcome:
    """Send the request and relay its answer to `down`; with `breaking`, one that breaks off may go on elsewhere.

    Raises UpstreamError (nothing was shown unless its `started` is true) and ClientClosed; cancelled, it closes the
    engine's connection at once.
    """
    if SURFACES[out.spoken].kind is not Kind.GENERATION:
        limits = _limits(upstream.limits, out.errand, whole=True)
        usage = await relay_plain(upstream.pool, out, down, meter, limits, apart)
        hooks.first_token()
        return Outcome(_credible(usage, out.errand, meter), None)
    errand, call, over = out.errand, out.call, out.translation
    chat, form = errand.chat, FORMATS[out.spoken]
    alias = errand.alias if over is None else None  # a translation writes the name itself
    view = form.view(chat, alias, over is not None)
    limits = _limits(upstream.limits, errand, whole=not out.stream)
    wheel, framing = upstream.pool.wheel, form.framing()
    if chat.stream:
        shown = view
        if over is not None:
            shown = TranslatedStream(view, over.writer(out.context, errand.stamp), form.framing(), form.data)
        so_far = breaking.begun(out, view, shown) if breaking is not None else None
        if so_far is not None:
            view, shown = so_far.view, so_far.shown
        await relay_stream(upstream.pool, call, down, shown, meter, limits, wheel, hooks, framing, errand.hold, so_far)
        usage = view.usage if so_far is None or not so_far.resumed else so_far.told
        return Outcome(_credible(usage, errand, meter), view.finish_reason, _kept(out, view))
    whole = await relay_whole(
        upstream.pool,
        call,
        limits,
        meter,
        wheel,
        form.assembler(chat),
        view,
        hooks,
        stream=out.stream,
        framing=framing,
        hold=errand.hold,
    )
    told = Finishing(chat, out.spoken, alias, out.context, errand.stamp, whole.events)
    answer, body = await apart.call(finished, told, whole.body, inline=INLINE_BYTES)
    if not answer.sound:
        raise not_an_answer(whole.body)
    errand.hold.settles(answer=len(body))
    errand.hold.worked()
    hooks.first_token()
    show_whole(down, whole, body)
    usage = _credible(view.usage or answer.usage, errand, meter)
    return Outcome(usage, view.finish_reason or answer.finish_reason, _kept(out, view) or answer.kept)


def _kept(out: Outbound, view: StreamView) -> str | None:
    """The id of an answer that the engine itself may keep: one that was passed through, on a surface that keeps any."""
    if out.spoken != "responses" or out.translation is not None:
        return None
    return getattr(view, "answer_id", None)


def _credible(usage: Usage | None, errand: Errand, meter: Meter) -> Usage | None:
    """The engine's figures as far as they can be true; the tokens that were seen, where it told no number of them."""
    if usage is None:
        return None
    chat = errand.chat
    seen = usage_credible(
        usage,
        prompt_bytes=None if chat.needs & HAS_MEDIA else errand.inbound.size,
        budget=None if (each := _budget(errand)) is None else each * chat.n * chat.prompts,
    )
    if seen.completion_tokens is None:
        seen = replace(seen, completion_tokens=meter.tokens or None)
    return None if seen.prompt_tokens is None and seen.completion_tokens is None else seen


def _budget(errand: Errand) -> int | None:
    if not errand.chat.max_tokens and SURFACES[errand.chat.surface].kind is not Kind.GENERATION:
        return None  # pictures and sounds take their time without a token
    return errand.max_tokens if errand.max_tokens is not None else errand.chat.max_tokens


def failure_of(upstream: Upstream, error: UpstreamError) -> Failure:
    """Classify what went wrong with an attempt, in the terms that retries and the breaker use."""
    if error.started and isinstance(error.__cause__, UpstreamError):
        # What the client saw break has what broke it as its cause.
        return replace(_cause(upstream, error.__cause__, started=True), retryable=False)
    return _cause(upstream, error, started=error.started)


def _cause(upstream: Upstream, error: UpstreamError, *, started: bool) -> Failure:
    if isinstance(error, BadStatus):
        failure = upstream.engine.failure(error.status, error.payload)
        if failure.kind is FailureKind.SERVER and error.status == 503 and error.retry_after is not None:
            return Failure(FailureKind.BUSY, "the engine is busy", retryable=True)  # it says when to come back
        return failure
    if isinstance(error, NotSpoken):
        return Failure(FailureKind.NOT_OFFERED, error.message, retryable=True)
    if isinstance(error, NotCleared):
        return Failure(FailureKind.NOT_CLEARED, error.message, retryable=True)
    if isinstance(error, AnswerTooLarge | NoRoom):
        return Failure(FailureKind.CLIENT, error.message)  # says nothing about the backend
    if isinstance(error, ConnectFailed):
        return Failure(FailureKind.CONNECT, error.message, retryable=True, blame=True)
    if isinstance(error, TimedOut):
        kind = FailureKind.TOKEN_GAP if started else FailureKind.FIRST_TOKEN
        return Failure(kind, error.message, retryable=True, blame=True)
    return Failure(FailureKind.BROKEN, error.message, retryable=True, blame=True)


def _limits(limits: Limits, errand: Errand, *, whole: bool) -> Limits:
    """Fill in what is left to the prediction: the first token, and for an answer in one piece all of it.

    The first byte of such an answer is its last, so no gap between tokens can be seen: it may take a gap for every
    token that it may have, but no longer than `whole_answer_limit`.
    """
    first = limits.first_token_s
    if math.isinf(first):
        first = first_token_limit(errand.predicted_ttft)
    if not whole:
        return replace(limits, first_token_s=first)
    budget = _budget(errand)
    tokens = max(budget if budget is not None else LONG_ANSWER, 1) * errand.chat.prompts
    longest = whole_answer_limit(tokens, errand.predicted_tpot)
    gaps = limits.token_gap_s * tokens
    by = "first_token, and token_gap for each token" if gaps < longest else "first_token, and the time for its tokens"
    return replace(limits, first_token_s=first + min(gaps, longest), whole_by=by)

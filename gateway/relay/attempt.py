"""One attempt at one engine: sent in the way it is best asked, answered in the way the client asked for."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, replace

from gateway.core.failure import FailureKind
from gateway.core.patience import first_token_limit, whole_answer_limit
from gateway.engines.adapter import Failure
from gateway.errors import BadStatus, ConnectFailed, TimedOut, UpstreamError
from gateway.relay.collect import relay_whole
from gateway.relay.downstream import Downstream
from gateway.relay.errand import Errand, Outbound, Upstream
from gateway.relay.limits import Hooks, Limits
from gateway.relay.meter import Meter
from gateway.relay.refusal import not_an_answer
from gateway.relay.stream import relay_stream
from gateway.wire.answer import WholeAnswer, read_answer
from gateway.wire.assemble import Assembler
from gateway.wire.chat_stream import ChatStream
from gateway.wire.usage import Usage
from gateway.wire.usage import credible as usage_credible

__all__ = ["Outcome", "attempt", "failure_of"]

INLINE_BYTES = 256 * 1024
"""Whole answers up to this size are read on the loop (well under a millisecond); longer ones in a thread."""
HAS_MEDIA = frozenset(("vision", "audio"))
LONG_ANSWER = 4096
"""Tokens that an answer without a budget is given time for."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attempt that ended well brought."""

    usage: Usage | None
    finish_reason: str | None


async def attempt(upstream: Upstream, out: Outbound, down: Downstream, meter: Meter, hooks: Hooks) -> Outcome:
    """Send the request and relay its answer to `down`.

    Raises UpstreamError (nothing was shown unless its `started` is true) and ClientClosed; cancelled, it closes the
    engine's connection at once.
    """
    errand, call, stream = out.errand, out.call, out.stream
    chat = errand.chat
    view = ChatStream(
        chat.surface,
        model_alias=errand.alias,
        show_usage=bool(chat.include_usage),
        choices=chat.n * chat.prompts,
        prompts=chat.prompts,
    )
    limits = _limits(upstream.limits, errand, whole=not stream)
    wheel = upstream.pool.wheel
    if chat.stream:
        await relay_stream(upstream.pool, call, down, view, meter, limits, wheel, hooks)
        return Outcome(_credible(view.usage, errand, meter), view.finish_reason)
    whole = await relay_whole(
        upstream.pool, call, limits, meter, wheel, Assembler(chat.surface), view, hooks, stream=stream
    )
    answer = await _read(whole.body, errand.alias)
    if answer is None:
        raise not_an_answer(whole.body)
    headers = [(name, value) for name, value in whole.headers if name != "content-type"]
    headers.append(("content-type", "application/json"))
    hooks.first_token()
    down.start(whole.status, headers, len(answer.body))
    down.write(answer.body)
    down.end()
    return Outcome(_credible(view.usage or answer.usage, errand, meter), view.finish_reason or answer.finish_reason)


async def _read(body: bytes, alias: str | None) -> WholeAnswer | None:
    if len(body) <= INLINE_BYTES:
        return read_answer(body, alias)
    return await asyncio.to_thread(read_answer, body, alias)


def _credible(usage: Usage | None, errand: Errand, meter: Meter) -> Usage | None:
    """The engine's figures as far as they can be true; the tokens that were seen, where it told no number of them."""
    if usage is None:
        return None
    chat = errand.chat
    seen = usage_credible(
        usage,
        prompt_bytes=None if chat.needs & HAS_MEDIA else len(errand.body),
        budget=None if (each := _budget(errand)) is None else each * chat.n * chat.prompts,
    )
    if seen.completion_tokens is None:
        seen = replace(seen, completion_tokens=meter.tokens or None)
    return None if seen.prompt_tokens is None and seen.completion_tokens is None else seen


def _budget(errand: Errand) -> int | None:
    return errand.max_tokens if errand.max_tokens is not None else errand.chat.max_tokens


def failure_of(upstream: Upstream, error: UpstreamError) -> Failure:
    """Classify what went wrong with an attempt, in the terms that retries and the breaker use."""
    if error.started and isinstance(error.__cause__, UpstreamError):
        # What the client saw break has what broke it as its cause.
        return replace(_cause(upstream, error.__cause__, started=True), retryable=False)
    return _cause(upstream, error, started=error.started)


def _cause(upstream: Upstream, error: UpstreamError, *, started: bool) -> Failure:
    if isinstance(error, BadStatus):
        return upstream.engine.failure(error.status, error.payload)
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

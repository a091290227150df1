"""One attempt at one engine: sent in the way it is best asked, answered in the way the client asked for."""

from __future__ import annotations

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
from gateway.relay.stream import relay_stream
from gateway.wire.answer import read_answer
from gateway.wire.assemble import Assembler
from gateway.wire.chat_stream import ChatStream
from gateway.wire.usage import Usage

__all__ = ["Outcome", "attempt", "failure_of"]


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
        return Outcome(view.usage, view.finish_reason)
    assembler = Assembler(chat.surface) if stream else None
    whole = await relay_whole(upstream.pool, call, limits, meter, wheel, assembler, view, hooks)
    body, usage, finish_reason = read_answer(whole.body, errand.alias)
    headers = [(name, value) for name, value in whole.headers if name != "content-type"]
    headers.append(("content-type", "application/json"))
    hooks.first_token()
    down.start(whole.status, headers, len(body))
    down.write(body)
    down.end()
    return Outcome(view.usage or usage, view.finish_reason or finish_reason)


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
    """Fill in what is left to the prediction: the first token, and for an answer in one piece all of it."""
    first = limits.first_token_s
    if math.isinf(first):
        first = first_token_limit(errand.predicted_ttft)
    if whole:
        first += whole_answer_limit(errand.predicted_output, errand.predicted_tpot)
    return replace(limits, first_token_s=first)

"""One attempt at one engine.

The client's body with the few declared edits, sent in the way this engine is best asked.
"""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass, field, replace

from gateway.core.failure import FailureKind
from gateway.core.patience import first_token_limit, whole_answer_limit
from gateway.engines.adapter import Engine, Failure
from gateway.errors import BadStatus, ConnectFailed, TimedOut, UpstreamError
from gateway.relay.call import Call
from gateway.relay.collect import relay_whole
from gateway.relay.downstream import Downstream
from gateway.relay.limits import Hooks, Limits
from gateway.relay.meter import Meter
from gateway.relay.stream import relay_stream
from gateway.relay.upstream import Pool
from gateway.wire.answer import read_answer
from gateway.wire.assemble import Assembler
from gateway.wire.chat_request import ChatRequest
from gateway.wire.chat_stream import ChatStream
from gateway.wire.splice import splice
from gateway.wire.usage import Usage

__all__ = ["Errand", "Outcome", "Upstream", "attempt", "failure_of"]

TARGETS = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}


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

    `max_tokens` is the output budget to set, None to leave the client's. Predicted times in seconds.
    """

    chat: ChatRequest
    body: bytes = field(repr=False)
    served_as: str
    alias: str | None = None
    max_tokens: int | None = None
    predicted_ttft: float = 0.0
    predicted_tpot: float = 0.0
    predicted_output: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attempt that ended well brought."""

    usage: Usage | None
    finish_reason: str | None


async def attempt(upstream: Upstream, errand: Errand, down: Downstream, meter: Meter, hooks: Hooks) -> Outcome:
    """Send the request and relay its answer to `down`.

    Raises UpstreamError (nothing was shown unless its `started` is true) and ClientClosed; cancelled, it closes the
    engine's connection at once.
    """
    chat, engine = errand.chat, upstream.engine
    stream = chat.stream or engine.streams_upstream(chat)
    call = _call(upstream, errand, stream)
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


def _call(upstream: Upstream, errand: Errand, stream: bool) -> Call:
    engine, pool = upstream.engine, upstream.pool
    edits = engine.edits(errand.chat, served_as=errand.served_as, stream=stream, max_tokens=errand.max_tokens)
    headers = [("Content-Type", "application/json"), ("Accept", "text/event-stream" if stream else "application/json")]
    headers += engine.headers(f"kvgate-{uuid.uuid4().hex}").items()
    if upstream.key:
        headers.append(("Authorization", f"Bearer {upstream.key}"))
    target = pool.base + TARGETS[errand.chat.surface]
    return Call("POST", target, pool.authority, headers, splice(errand.body, edits))


def _limits(limits: Limits, errand: Errand, *, whole: bool) -> Limits:
    """Fill in what is left to the prediction: the first token, and for an answer in one piece all of it."""
    first = limits.first_token_s
    if math.isinf(first):
        first = first_token_limit(errand.predicted_ttft)
    if whole:
        first += whole_answer_limit(errand.predicted_output, errand.predicted_tpot)
    return replace(limits, first_token_s=first)

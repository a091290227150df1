"""How an attempt ended, in the terms of the core."""

from __future__ import annotations

from gateway.core.failure import FailureKind
from gateway.core.lease import Ended
from gateway.core.overflowed import Overflowed
from gateway.engines.adapter import Failure, Load
from gateway.relay.attempt import Outcome
from gateway.relay.errand import Upstream
from gateway.relay.meter import Meter

__all__ = ["ABORT_DECODING", "ended_of", "lingers", "overflowed", "reported"]

_GIVEN_UP = (FailureKind.FIRST_TOKEN, FailureKind.TOKEN_GAP)
"""Failures after which the engine may still be at work."""
_CALLS = ("tool_calls", "function_call")
ABORT_DECODING = 0.2
"""Seconds until a decoding request's place is free after its connection closed (llama.cpp 0.05 to 0.07, vLLM 0.04)."""


def ended_of(
    meter: Meter,
    outcome: Outcome | None,
    failure: Failure | None,
    rest: float | None,
    *,
    shown: bool,
    text_only: bool,
) -> Ended:
    """The attempt as numbers: what its lease is settled with, and what is learned from it."""
    usage = outcome.usage if outcome is not None else None
    return Ended(
        completed=outcome is not None,
        failure=failure.kind if failure is not None else None,
        rest=rest,
        shown=shown,
        prompt_tokens=usage.prompt_tokens if usage is not None else None,
        output_tokens=usage.completion_tokens if usage is not None else (meter.tokens or None),
        cached_tokens=usage.cached_tokens if usage is not None else None,
        finished=outcome is not None and outcome.finish_reason in ("stop", *_CALLS),
        calls=outcome is not None and outcome.finish_reason in _CALLS,
        ttft=meter.ttft,
        tpot=meter.tpot,
        prefill_seconds=usage.prompt_seconds if usage is not None else None,
        text_only=text_only,
        media_tokens=usage.media_tokens if usage is not None else None,
        events=meter.tokens,
        garbage=meter.garbage,
    )


def overflowed(failure: Failure) -> Overflowed:
    """What an engine said that found the request too long."""
    return Overflowed(failure.limit, failure.requested, failure.prompt)


def lingers(upstream: Upstream, outcome: Outcome | None, failure: Failure | None, meter: Meter) -> float:
    """Seconds that an abandoned request may stay in its engine, whether its client left or it was given up as silent.

    Next to none while it decodes, a batch while in prefill.
    """
    if outcome is not None or meter.sent_at is None or (failure is not None and failure.kind not in _GIVEN_UP):
        return 0.0
    return ABORT_DECODING if meter.first_token_at is not None else upstream.engine.traits.abort_settle_s


def reported(upstream: Upstream, meter: Meter) -> tuple[Load, float] | None:
    """The load that the head of the answer told, and when it came (seconds, monotonic); None without a report."""
    if meter.head_at is None:
        return None
    load = upstream.engine.reply_load(dict(meter.headers))
    return None if load is None else (load, meter.head_at)

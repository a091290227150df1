"""One request from top to bottom; every step returns a value to this file.

measure    the body becomes a parsed request, byte counts and a prefix chain
describe   policy and estimators make numbers of it: route, class, label, tokens
submit     the dispatcher answers with a lease, or raises the refusal
attempt    the relay sends it to the leased backend and passes the answer on
settle     what was measured is learned; before the first byte another backend may try
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Protocol

from gateway import clock
from gateway.core.failure import FailureKind
from gateway.core.lease import Ended, Lease
from gateway.core.reasons import Reason
from gateway.core.request import Request
from gateway.core.suspects import Suspects
from gateway.dispatcher import Dispatcher
from gateway.engines.adapter import Failure
from gateway.errors import GatewayError, Unavailable, UpstreamError
from gateway.relay.attempt import Outcome, attempt, failure_of
from gateway.relay.downstream import Downstream
from gateway.relay.engine_refusal import engine_refusal
from gateway.relay.errand import Errand, Upstream, prepare
from gateway.relay.limits import Hooks
from gateway.relay.meter import Meter
from gateway.tokens.describe import describe, route_of
from gateway.tokens.measure import Measured, Measurer
from gateway.wire.answer_headers import answer_headers
from gateway.wire.inbound import AccessNote, Inbound

__all__ = ["Chronicle", "Pipeline"]

_NOT_BEGUN = frozenset((FailureKind.CONNECT, FailureKind.BUSY))
_FULL = frozenset((Reason.QUEUE_FULL, Reason.QUEUE_TIMEOUT, Reason.DEADLINE, Reason.OVER_QUOTA))
ABORT_DECODING = 0.2
"""Seconds until a decoding request's place is free after its connection closed (llama.cpp 0.05 to 0.07, vLLM 0.04)."""


class Chronicle(Protocol):
    """Who writes down how attempts ended; must not block."""

    def ended(self, lease: Lease, ended: Ended, note: AccessNote) -> None:
        """An attempt is over."""

    def retried(self, lease: Lease) -> None:
        """Another attempt follows the one under this lease."""

    def left_queue(self, request: Request, note: AccessNote) -> None:
        """The client left before a lease was granted."""

    def not_considered(self, error: GatewayError) -> None:
        """The request was turned away before anything was decided about it."""

    def turned_down(self, request: Request, error: GatewayError, note: AccessNote, *, tried: bool) -> None:
        """The client gets this error; `tried`: an engine had seen the request."""


class Pipeline:
    """Serves generation requests. `upstreams`, by backend name, is replaced whole at a reload."""

    def __init__(
        self, *, measurer: Measurer, dispatcher: Dispatcher, upstreams: Mapping[str, Upstream], chronicle: Chronicle
    ) -> None:
        self.upstreams = upstreams
        self._measurer = measurer
        self._dispatcher = dispatcher
        self._chronicle = chronicle
        self._suspects = Suspects()

    async def serve(self, inbound: Inbound, down: Downstream) -> None:
        """Answer one request through `down`.

        Raises GatewayError while nothing was sent, StreamBroken after, ClientClosed when nobody reads any more.
        """
        try:
            measured = await self._measurer.measure(inbound.surface, inbound.body)
            request = self._describe(inbound, measured)
            self._let_pass(measured)
        except GatewayError as error:
            self._chronicle.not_considered(error)
            raise
        await self._until_answered(request, measured, inbound, down)

    def _let_pass(self, measured: Measured) -> None:
        """Raise Unavailable for a prompt that just broke two engines."""
        held = self._suspects.held(measured.chain.whole, clock.monotonic())
        if held:
            raise Unavailable(
                f"This very prompt broke the connection to two engines just now; it is held back for {held:.0f} s.",
                code="held_back",
                reason=Reason.RETRIES_SPENT,
                retry_after=held,
            )

    async def _until_answered(self, request: Request, measured: Measured, inbound: Inbound, down: Downstream) -> None:
        """Attempts, one lease each, until one is answered or none is left."""
        following: Request | None = request
        failure: tuple[Failure, UpstreamError] | None = None
        while following is not None:
            request = following
            try:
                lease = await self._dispatcher.submit(request, measured.chain)
            except asyncio.CancelledError:
                self._chronicle.left_queue(request, inbound.note)
                raise
            except GatewayError as refused:
                error = _most_telling(refused, failure)
                raise self._told(request, error, inbound, tried=failure is not None) from refused
            failure = await self._attempt(lease, measured, inbound, down)
            if failure is None:
                return
            following = self._dispatcher.retry(lease, failure[0].kind, counted=_counted(failure[0]))
            if following is not None:
                self._chronicle.retried(lease)
        if failure is not None:
            error = engine_refusal(*failure, again=self._dispatcher.try_again_in(lease))
            raise self._told(request, error, inbound, tried=True) from failure[1]

    def _told(self, request: Request, error: GatewayError, inbound: Inbound, *, tried: bool) -> GatewayError:
        error.decision_id = request.id
        self._chronicle.turned_down(request, error, inbound.note, tried=tried)
        return error

    def _describe(self, inbound: Inbound, measured: Measured) -> Request:
        dispatcher, client = self._dispatcher, inbound.client
        snapshot = dispatcher.snapshot()
        route = route_of(measured.chat.model, client, dispatcher.plan, snapshot)
        inbound.note.model = route.name
        inbound.note.request_id = request_id = f"req-{secrets.token_hex(8)}"
        return describe(
            request_id,
            measured,
            client,
            route,
            dispatcher.plan,
            dispatcher.experience,
            inbound.headers,
            snapshot,
        )

    async def _attempt(
        self, lease: Lease, measured: Measured, inbound: Inbound, down: Downstream
    ) -> tuple[Failure, UpstreamError] | None:
        """One attempt under one lease, settled whatever happens. Returns a failure that another attempt may mend."""
        upstream, meter = self.upstreams[lease.backend], Meter()
        outcome: Outcome | None = None
        failure: Failure | None = None
        rest: float | None = None
        try:
            out = await prepare(upstream, _errand(lease, measured, inbound))
            outcome = await attempt(upstream, out, down, meter, self._hooks(lease, meter, down, out.dropped))
        except UpstreamError as error:
            failure, rest = failure_of(upstream, error), error.retry_after
            if error.started:
                raise
            return failure, error
        finally:
            # Nothing is awaited here, so no cancellation can come between the attempt and its settlement.
            ended = _ended(meter, outcome, failure, rest, down, measured)
            if failure is not None and failure.kind is FailureKind.BROKEN:
                self._suspects.broke(measured.chain.whole, lease.backend, clock.monotonic())
            self._dispatcher.settle(lease, ended, measured.counts, linger=_linger(upstream, outcome, failure, meter))
            self._chronicle.ended(lease, ended, inbound.note)
        return None

    def _hooks(self, lease: Lease, meter: Meter, down: Downstream, dropped: tuple[str, ...]) -> Hooks:
        def fields() -> tuple[tuple[str, str], ...]:
            ttft, request = meter.ttft, lease.request
            return answer_headers(lease.decision, lease.backend, request.id, lease.queued, ttft, dropped)

        def first_token() -> None:
            self._dispatcher.first_token(lease)
            down.extra = fields()

        def progress(tokens: int) -> None:
            self._dispatcher.progress(lease, tokens)

        down.extra = fields()
        return Hooks(first_token=first_token, progress=progress)


def _most_telling(refused: GatewayError, failure: tuple[Failure, UpstreamError] | None) -> GatewayError:
    """What the client is told when no further attempt finds a backend.

    What an engine made of the request says more than any refusal of ours, and is the same whether or not another one
    was there to try. Only of one that did not begin with it is less to say than that the others are full.
    """
    if failure is None or refused.reason is Reason.SHUTTING_DOWN:
        return refused
    if failure[0].kind in _NOT_BEGUN and refused.reason in _FULL:
        return refused
    return engine_refusal(*failure, again=refused.retry_after)


def _errand(lease: Lease, measured: Measured, inbound: Inbound) -> Errand:
    decision, footprint = lease.decision, lease.decision.footprint
    served_as = decision.served_as or measured.chat.model
    # A fallback is shown under its own name; else the client reads back the name it asked for.
    shown = decision.model if decision.tier > 0 else measured.chat.model
    return Errand(
        chat=measured.chat,
        body=inbound.body,
        served_as=served_as,
        alias=shown if shown != served_as else None,
        max_tokens=footprint.max_tokens if footprint is not None else None,
        predicted_ttft=decision.predicted_ttft or 0.0,
        predicted_tpot=decision.predicted_tpot or 0.0,
        predicted_output=footprint.output if footprint is not None else 0,
    )


def _counted(failure: Failure) -> int | None:
    """Tokens that an engine counted in a prompt which it found too long; at least one over its limit."""
    if failure.requested is not None:
        return failure.requested
    return failure.limit + 1 if failure.limit is not None else None


def _ended(
    meter: Meter,
    outcome: Outcome | None,
    failure: Failure | None,
    rest: float | None,
    down: Downstream,
    measured: Measured,
) -> Ended:
    usage = outcome.usage if outcome is not None else None
    return Ended(
        completed=outcome is not None,
        failure=failure.kind if failure is not None else None,
        rest=rest,
        shown=down.started,
        prompt_tokens=usage.prompt_tokens if usage is not None else None,
        output_tokens=usage.completion_tokens if usage is not None else (meter.tokens or None),
        cached_tokens=usage.cached_tokens if usage is not None else None,
        finished=outcome is not None and outcome.finish_reason in ("stop", "tool_calls", "function_call"),
        ttft=meter.ttft,
        tpot=meter.tpot,
        prefill_seconds=usage.prompt_seconds if usage is not None else None,
        text_only=not measured.chat.images,
    )


def _linger(upstream: Upstream, outcome: Outcome | None, failure: Failure | None, meter: Meter) -> float:
    """Seconds that an abandoned request may stay in its engine.

    Next to none while it decodes, a batch while in prefill.
    """
    if outcome is not None or failure is not None or meter.sent_at is None:
        return 0.0
    return ABORT_DECODING if meter.first_token_at is not None else upstream.engine.traits.abort_settle_s

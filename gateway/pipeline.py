"""One request from top to bottom; every step returns a value to this file.

measure    the body becomes a parsed request, byte counts and a prefix chain
describe   policy and estimators make numbers of it: route, class, label, tokens
count      where a decision hangs on the prompt's length, its tokens are counted
submit     the dispatcher answers with a lease, or raises the refusal
attempt    the relay sends it to the leased backend and passes the answer on
settle     what was measured is learned; before the first byte another backend may try
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import replace

from gateway import clock
from gateway.apart import Apart
from gateway.attempts import Attempts, Chronicle
from gateway.core.lease import Lease
from gateway.core.reasons import Reason
from gateway.core.request import Request
from gateway.core.scheduling import RETRY_AFTER_MAX
from gateway.core.steadying import rule
from gateway.core.suspects import Suspects
from gateway.dispatcher import Dispatcher
from gateway.engines.adapter import Failure
from gateway.errors import ContextTooLong, GatewayError, Unavailable, UpstreamError
from gateway.hedging import Hedging
from gateway.relay.breaking import Breaking
from gateway.relay.counted import tell_count
from gateway.relay.downstream import Downstream
from gateway.relay.ending import overflowed
from gateway.relay.engine_refusal import engine_refusal, most_telling
from gateway.relay.errand import Upstream
from gateway.relay.questions import Questions
from gateway.relay.stored import StoredAnswers
from gateway.relay.stream import tell_broken
from gateway.relay.waiting import Waiting
from gateway.relay.wheel import TimerWheel
from gateway.tokens.describe import describe, route_of
from gateway.tokens.exact import ExactCounts, Subject
from gateway.tokens.exact_engine import EngineCounts
from gateway.tokens.exact_local import LocalCounts
from gateway.tokens.measure import Measured, Measurer
from gateway.wire.inbound import Inbound
from gateway.wire.quota_words import quota_fields
from gateway.wire.refusal import prompt_member
from gateway.wire.steadying import steadied

__all__ = ["Chronicle", "Pipeline"]


class Pipeline:
    """Serves generation requests; `upstreams` by backend name."""

    def __init__(
        self,
        *,
        measurer: Measurer,
        dispatcher: Dispatcher,
        upstreams: Mapping[str, Upstream],
        chronicle: Chronicle,
        wheel: TimerWheel,
        apart: Apart,
        keepalive_s: float = 15.0,
    ) -> None:
        self.upstreams = upstreams
        self.stored = StoredAnswers(upstreams)
        questions = Questions(upstreams)
        self.counts = ExactCounts(EngineCounts(questions, dispatcher.leases.may_see), LocalCounts())
        self._measurer = measurer
        self._dispatcher = dispatcher
        self._chronicle = chronicle
        self._suspects = Suspects()
        self._wheel = wheel
        self._keepalive_s = keepalive_s
        attempts = Attempts(
            leases=dispatcher.leases,
            upstreams=upstreams,
            stored=self.stored,
            suspects=self._suspects,
            questions=questions,
            chronicle=chronicle,
            apart=apart,
            fields=self._quota_fields,
        )
        self._hedging = Hedging(attempts, dispatcher, chronicle)

    async def serve(self, inbound: Inbound, down: Downstream) -> None:
        """Answer one request through `down`.

        Raises GatewayError while nothing was sent, StreamBroken after, ClientClosed when nobody reads any more.
        """
        try:
            await self._serve(inbound, down)
        except GatewayError:
            down.extra = tuple((dict(down.extra) | dict(self._quota_fields(inbound))).items())
            raise

    async def _serve(self, inbound: Inbound, down: Downstream) -> None:
        try:
            measured = await self._measure(inbound)
            measured = await self._steadied(inbound, measured)
            subject = self._describe(inbound, measured)
            self._let_pass(measured)
        except GatewayError as error:
            self._chronicle.not_considered(error)
            raise
        if inbound.surface == "count_tokens":
            tell_count(await self.counts.asked_for(subject, measured, inbound.body), down)
            return
        try:
            request = await self.counts.settled(subject, measured, inbound.body, self._dispatcher.plan)
        except asyncio.CancelledError:
            self._chronicle.left_queue(subject.request, inbound.note)
            raise
        await self._until_answered(request, measured, inbound, down)

    async def _steadied(self, inbound: Inbound, measured: Measured) -> Measured:
        """Measure anew what an operator's rules for this model take something out of."""
        route = self._dispatcher.plan.routes.get(measured.chat.model)
        if route is None or not route.rewrites:
            return measured
        rules = [rule(*each) for each in route.rewrites]
        body = await asyncio.to_thread(steadied, inbound.body, rules)
        if body is inbound.body:
            return measured
        inbound.body = body
        return await self._measure(inbound)

    async def _measure(self, inbound: Inbound) -> Measured:
        return await self._measurer.measure(inbound.surface, inbound.body, inbound.content_type, inbound.client.salt)

    async def close(self) -> None:
        """Stop what it does beside requests."""
        await self.counts.close()

    def _let_pass(self, measured: Measured) -> None:
        """Raise Unavailable for a prompt that just broke two engines."""
        held = self._suspects.held(measured.chain.whole, clock.monotonic())
        if held:
            raise Unavailable(
                "Two engines broke just as they ran this very prompt; so that no third one does, it is held back for "
                f"{held:.0f} s.",
                code="held_back",
                reason=Reason.RETRIES_SPENT,
                retry_after=min(held, RETRY_AFTER_MAX),
            )

    async def _until_answered(self, request: Request, measured: Measured, inbound: Inbound, down: Downstream) -> None:
        """Attempts, one lease each, until one is answered or none is left."""
        following: Request | None = request
        failure: tuple[Failure, UpstreamError] | None = None
        breaking = Breaking() if request.resumes else None
        names: dict[str, str] = {}  # the engines' for the model, by the client's
        while following is not None:
            request = following
            try:
                lease = await self._leased(request, measured, down)
            except asyncio.CancelledError:
                self._chronicle.left_queue(request, inbound.note)
                raise
            except GatewayError as refused:
                if breaking is not None and failure is not None and down.shown:
                    raise self._broke_off(request, failure[1], breaking, inbound, down) from refused
                error = most_telling(refused, failure, names)
                raise self._told(request, error, inbound, tried=failure is not None) from refused
            names[lease.decision.served_as or ""] = measured.chat.model
            names[self.upstreams[lease.backend].key or ""] = "[...]"
            lease, failure, breaking = await self._hedging.under(lease, measured, inbound, down, breaking)
            if failure is None:
                return
            if breaking is not None and down.shown:
                following = self._rest(lease, failure[0], breaking)
                if following is None:
                    raise self._broke_off(request, failure[1], breaking, inbound, down)
            else:
                following = self._dispatcher.leases.retry(lease, failure[0].kind, said=overflowed(failure[0]))
            if following is not None:
                self._chronicle.retried(lease, resumes=following.resumed > request.resumed)
        if failure is not None:
            error = engine_refusal(*failure, self._dispatcher.leases.try_again_in(lease), names)
            raise self._told(request, error, inbound, tried=True) from failure[1]

    async def _leased(self, request: Request, measured: Measured, down: Downstream) -> Lease:
        """A lease; the client of a stream is kept from giving up while there is none."""
        if not request.stream:
            return await self._dispatcher.submit(request, measured.chain)
        quiet, keepalive = 2 * self._keepalive_s, self._keepalive_s
        with Waiting(down, self._wheel, quiet_s=quiet, keepalive_s=keepalive):
            return await self._dispatcher.submit(request, measured.chain)

    def _rest(self, lease: Lease, failure: Failure, breaking: Breaking) -> Request | None:
        """The request for what is left of an answer that broke off; None: it ends there."""
        given = breaking.broke_off()
        return None if given is None else self._dispatcher.leases.resume(lease, failure.kind, given)

    def _broke_off(
        self, request: Request, error: UpstreamError, breaking: Breaking, inbound: Inbound, down: Downstream
    ) -> GatewayError:
        """Tell the client in its stream that the answer ends in the middle."""
        error.started = True
        if breaking.so_far is not None:
            tell_broken(down, breaking.so_far.shown, error)
        return self._told(request, error, inbound, tried=True)

    def _told(self, request: Request, error: GatewayError, inbound: Inbound, *, tried: bool) -> GatewayError:
        error.decision_id = request.id
        if isinstance(error, ContextTooLong):
            error.param = prompt_member(request.surface)
        self._chronicle.turned_down(request, error, inbound.note, tried=tried)
        return error

    def _quota_fields(self, inbound: Inbound) -> tuple[tuple[str, str], ...]:
        """What is left to a client that has rates, as its libraries read it."""
        standing = self._dispatcher.leases.quotas.standing(inbound.client.name)
        return () if standing is None else quota_fields(inbound.surface, *standing, clock.wall())

    def _describe(self, inbound: Inbound, measured: Measured) -> Subject:
        dispatcher, client = self._dispatcher, inbound.client
        snapshot = dispatcher.leases.offered()
        route = route_of(measured.chat.model, client, dispatcher.plan, snapshot)
        inbound.note.model = route.name
        inbound.note.request_id = request_id = f"req-{secrets.token_hex(8)}"
        request = describe(
            request_id,
            measured,
            client,
            route,
            dispatcher.plan,
            dispatcher.leases.experience,
            inbound.headers,
            snapshot,
        )
        keeper = self.stored.keeper(measured.chat.previous, client.name)
        return Subject(request if keeper is None else replace(request, keeper=keeper), route, snapshot)

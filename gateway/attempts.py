"""One attempt under one lease: made ready, sent, passed on and settled, whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from gateway import clock
from gateway.apart import Apart
from gateway.core.failure import FailureKind
from gateway.core.lease import Ended, Lease
from gateway.core.request import Request
from gateway.core.suspects import Suspects
from gateway.engines.adapter import Failure
from gateway.errors import GatewayError, NotCleared, UpstreamError
from gateway.fleet.leases import Leases
from gateway.relay.attempt import Outcome, attempt, failure_of
from gateway.relay.breaking import Breaking
from gateway.relay.downstream import Downstream
from gateway.relay.ending import ended_of, lingers, reported
from gateway.relay.errand import GoesOn, Outbound, Upstream, errand_of, prepare
from gateway.relay.limits import Hooks
from gateway.relay.meter import Meter
from gateway.relay.questions import Questions
from gateway.relay.slot_swaps import swap_slot
from gateway.relay.stored import StoredAnswers
from gateway.tokens.measure import Measured
from gateway.wire.answer_headers import answer_headers
from gateway.wire.inbound import AccessNote, Inbound
from gateway.wire.usage import Usage

__all__ = ["Attempts", "Chronicle"]


class Chronicle(Protocol):
    """Who writes down how attempts ended; must not block."""

    def ended(self, lease: Lease, ended: Ended, note: AccessNote) -> None:
        """An attempt is over."""

    def retried(self, lease: Lease, *, resumes: bool = False) -> None:
        """Another attempt follows the one under this lease; `resumes`: it goes on in the middle of the answer."""

    def hedged(self, lease: Lease) -> None:
        """An attempt under this lease was begun beside another one that is late."""

    def left_queue(self, request: Request, note: AccessNote) -> None:
        """The client left before a lease was granted."""

    def not_considered(self, error: GatewayError) -> None:
        """The request was turned away before anything was decided about it."""

    def turned_down(self, request: Request, error: GatewayError, note: AccessNote, *, tried: bool) -> None:
        """The client gets this error; `tried`: an engine had seen the request."""


class Attempts:
    """Makes them. `stored`: which engines keep answers; `suspects`: prompts that broke engines; `fields`: what is left
    to a client that has rates, as header fields."""

    def __init__(
        self,
        *,
        leases: Leases,
        upstreams: Mapping[str, Upstream],
        stored: StoredAnswers,
        suspects: Suspects,
        questions: Questions,
        chronicle: Chronicle,
        apart: Apart,
        fields: Callable[[Inbound], tuple[tuple[str, str], ...]],
    ) -> None:
        self._leases = leases
        self._upstreams = upstreams
        self._stored = stored
        self._suspects = suspects
        self._questions = questions
        self._chronicle = chronicle
        self._apart = apart
        self._fields = fields

    async def under(
        self,
        lease: Lease,
        measured: Measured,
        inbound: Inbound,
        down: Downstream,
        breaking: Breaking | None,
        lost: Callable[[], bool] = lambda: False,
    ) -> tuple[Failure, UpstreamError] | None:
        """One attempt under this lease. Returns a failure that another attempt may mend.

        `lost` says whether another one beside it has answered the client.

        Raises UpstreamError where the client was told of it, ClientClosed, and what makes a request ready raises.
        """
        upstream, meter = self._upstreams[lease.backend], Meter()
        outcome: Outcome | None = None
        failure: Failure | None = None
        rest: float | None = None
        open_ = False  # the client waits for the rest
        goes_on: GoesOn | None = None
        try:
            self._hold_to_the_boundary(lease)
            if lease.swap is not None:
                await swap_slot(self._questions, lease, self._leases.experience)
            offer, now = self._leases.offer(lease), int(clock.wall())
            if breaking is not None:
                goes_on = await breaking.on(lease, upstream, measured.chat, inbound.body, self._questions)
            out = await prepare(upstream, errand_of(lease, measured.chat, inbound, offer, now, goes_on), self._apart)
            hooks = self._hooks(lease, meter, down, out)
            self._hold_to_the_boundary(lease)
            outcome = await attempt(upstream, out, down, meter, hooks, self._apart, breaking)
            if outcome.kept is not None:
                self._stored.note(outcome.kept, lease, measured.chat.model)
        except UpstreamError as error:
            failure, rest = failure_of(upstream, error), error.retry_after
            open_ = error.unsaid or goes_on is not None
            if error.started and not open_:
                raise
            return failure, error
        finally:
            # Nothing is awaited here, so no cancellation can come between the attempt and its settlement.
            ended = ended_of(
                meter, outcome, failure, rest, shown=down.shown and not open_, text_only=not measured.chat.media
            )
            if failure is not None and failure.kind is FailureKind.BROKEN:
                broke, first = clock.monotonic(), meter.first_token_at
                decoded = None if first is None else broke - first
                self._suspects.broke(measured.chain.whole, lease.backend, broke, decoded=decoded)
            self._leases.settle(lease, ended, measured.counts, linger=lingers(upstream, outcome, failure, meter))
            if (told := reported(upstream, meter)) is not None:
                self._leases.roster.reported(lease.backend, *told, clock.monotonic())
            if not lost():
                self._chronicle.ended(lease, ended, inbound.note)
        return None

    def _hold_to_the_boundary(self, lease: Lease) -> None:
        if not self._leases.may_see(lease.request, lease.backend):
            raise NotCleared(
                "the backend that was chosen may not see this request's data any more: the file was changed"
            )

    def _hooks(self, lease: Lease, meter: Meter, down: Downstream, out: Outbound) -> Hooks:
        inbound = out.errand.inbound

        def fields() -> tuple[tuple[str, str], ...]:
            ttft, request = meter.ttft, lease.request
            found = answer_headers(
                lease.decision, lease.backend, request.id, lease.queued, ttft, out.dropped, lease.ahead,
                self._leases.roster.wrong,
            )  # fmt: skip
            return (*found, *self._fields(inbound))

        def first_token() -> None:
            self._leases.first_token(lease)
            down.extra = fields()

        def progress(tokens: int) -> None:
            self._leases.progress(lease, tokens)
            if down.shown and inbound.body and not lease.request.resumes:
                inbound.spend()
                out.call.spend()

        def counted(usage: Usage) -> None:
            self._leases.counted(lease, usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)

        down.extra = fields()
        return Hooks(first_token=first_token, progress=progress, counted=counted)

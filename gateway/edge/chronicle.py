"""Writes down what happened to each request: metrics, journal, and its line in the access log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway import clock
from gateway.core.decision import Decision, Verdict
from gateway.core.lease import Ended, Lease
from gateway.core.request import Request
from gateway.core.truncation import was_cut
from gateway.errors import GatewayError
from gateway.telemetry.audit import Audit
from gateway.telemetry.journal import Journal
from gateway.telemetry.log import log_warning
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.parting import parting_record, parting_words
from gateway.telemetry.record import Settled
from gateway.wire.inbound import AccessNote

__all__ = ["Chronicle"]

_NO_SINGLE_CASE = 2
"""Turns in a row."""
_TOLD = 256


class Chronicle:
    """Implements the dispatcher's Observer and the pipeline's Chronicle.

    Nothing here waits, and no prompt text comes by.
    """

    def __init__(
        self,
        metrics: Metrics,
        journal: Journal,
        audit: Audit | None = None,
        causes: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """`causes`: what is wrong with backends now, by name."""
        self._causes = causes
        self._metrics = metrics
        self._journal = journal
        self._audit = audit
        self._cutting: set[str] = set()
        """Backends that were told of, as cutting prompts short."""
        self._parting: set[tuple[str, str]] = set()
        """Clients and models that were told of, as changing their prompts."""

    def pumped(self, seconds: float, decisions: int) -> None:
        """One look at the queue took this long."""
        if decisions:
            self._metrics.decided(seconds)

    def decided(self, request: Request, decision: Decision) -> None:
        """A decision that ends the wait."""
        self._journal.decided(request, decision, self._causes())
        if self._audit is not None:
            self._audit.decided(request, decision)
        if decision.verdict is Verdict.ADMIT:
            cached = decision.footprint.cached if decision.footprint is not None else 0
            waited = decision.now - request.arrival
            self._metrics.admitted(request.model, decision.backend or "", queue_s=waited, predicted_cached=cached)
        elif request.attempt == 0:
            self._metrics.refused(request.model, str(decision.reason))

    def ended(self, lease: Lease, ended: Ended, note: AccessNote) -> None:
        """An attempt is over; its numbers are the request's, if it was the last."""
        request, metrics = lease.request, self._metrics
        note.backend, note.queue_s = lease.backend, round(lease.queued, 6)
        if ended.failure is not None:
            metrics.failed(lease.backend, str(ended.failure))
            self._journal.failed(request.id, lease.backend, ended.failure)
            if not ended.shown:
                return  # another attempt may follow; `failed` is told if none does
            self._settle(lease, ended, "failed", note)
        elif ended.completed:
            self._settle(lease, ended, "completed", note)
            self._look_for_truncation(lease, ended)
        else:
            metrics.client_closed(request.model, "stream" if ended.ttft is not None else "prefill")
            self._settle(lease, ended, "client_closed", note)

    def retried(self, lease: Lease, *, resumes: bool = False) -> None:
        """Another attempt follows one that failed under this lease; `resumes`: in the middle of the answer."""
        self._metrics.retried(lease.backend)
        if resumes:
            self._metrics.resumed(lease.backend)

    def hedged(self, lease: Lease) -> None:
        """An attempt beside another one that is late was begun there."""
        self._metrics.hedged(lease.backend)

    def left_queue(self, request: Request, note: AccessNote) -> None:
        """The client left before any backend had the request."""
        self._metrics.client_closed(request.model, "queued")
        self._metrics.settled(request.model, None, "client_closed")
        self._close(request, note, Settled("client_closed", 499, clock.monotonic() - request.arrival))

    def not_considered(self, error: GatewayError) -> None:
        """The request was turned away before anything was decided about it; the model it names may be any word."""
        self._metrics.refused(None, str(error.reason))

    def turned_down(self, request: Request, error: GatewayError, note: AccessNote, *, tried: bool) -> None:
        """The request got an error in place of an answer; `tried`: at least one backend had seen it."""
        outcome = "failed" if tried and error.status >= 500 else "refused"
        if tried:
            self._metrics.settled(request.model, note.backend, outcome)
        note.outcome = outcome
        self._close(
            request,
            note,
            Settled(outcome, error.status, clock.monotonic() - request.arrival, backend=note.backend, code=error.code),
        )

    def _settle(self, lease: Lease, ended: Ended, outcome: str, note: AccessNote) -> None:
        request = lease.request
        parts = parting_record(lease.divergence)
        if parts is not None:
            self._metrics.parted(request.model)
            self._tell_of_parting(request, parts)
        self._metrics.settled(
            request.model,
            lease.backend,
            outcome,
            ttft_s=ended.ttft,
            tpot_s=ended.tpot,
            prompt_tokens=ended.prompt_tokens,
            completion_tokens=ended.output_tokens,
            cached_tokens=ended.cached_tokens,
        )
        note.outcome = outcome
        note.prompt_tokens, note.completion_tokens = ended.prompt_tokens, ended.output_tokens
        note.cached_tokens, note.ttft_s = ended.cached_tokens, ended.ttft
        status = {"completed": 200, "client_closed": 499}.get(outcome, 502)
        self._close(
            request,
            note,
            Settled(
                outcome,
                status,
                clock.monotonic() - request.arrival,
                backend=lease.backend,
                queue_s=lease.queued,
                ttft_s=ended.ttft,
                tpot_s=ended.tpot,
                prompt_tokens=ended.prompt_tokens,
                completion_tokens=ended.output_tokens,
                cached_tokens=ended.cached_tokens,
                code=str(ended.failure) if ended.failure is not None else None,
                parts=parts,
            ),
        )

    def _tell_of_parting(self, request: Request, parts: dict[str, Any]) -> None:
        """Once for each client and model, when it is no single case."""
        who = (request.client, request.model)
        if parts["turns"] != _NO_SINGLE_CASE or who in self._parting or len(self._parting) >= _TOLD:
            return
        self._parting.add(who)
        log_warning(
            "the prompts of a conversation change near their start at every turn, so no cache can hold them: "
            + parting_words(parts),
            client=request.client,
            model=request.model,
        )

    def _close(self, request: Request, note: AccessNote, settled: Settled) -> None:
        note.outcome = note.outcome or settled.outcome
        self._journal.settled(request.id, settled)

    def _look_for_truncation(self, lease: Lease, ended: Ended) -> None:
        if not was_cut(lease, ended):
            return
        self._metrics.truncated(lease.backend)
        if lease.backend in self._cutting:
            return
        self._cutting.add(lease.backend)
        footprint = lease.decision.footprint
        log_warning(
            "an engine counts far fewer tokens than the prompt has, as if it had thrown its front away; its "
            "context window is probably smaller than it says: give it a larger one, or set `context` of its model",
            backend=lease.backend,
            model=lease.offer.model,
            estimated=footprint.prompt if footprint is not None else None,
            counted=ended.prompt_tokens,
        )

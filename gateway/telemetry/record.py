"""A request and its decisions as plain data: for the journal file, the admin API and `explain`.

Numbers and names, no prompt text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Any

from gateway.core.decision import Candidate, Decision
from gateway.core.failure import FailureKind
from gateway.core.footprint import Footprint
from gateway.core.quota import Shortfall
from gateway.core.request import Estimate, Request

__all__ = ["Settled", "decision_record", "entry_record"]

Record = dict[str, Any]

# What a model name or client name looks like; anything else that was sent in its place may be anything.
_NAME = re.compile(r"[\w./:@+-]{1,128}", re.ASCII)
_ESTIMATE = tuple([field.name for field in fields(Estimate)])
_ABILITIES = frozenset(("tools", "vision", "json_schema", "logprobs", "audio"))


@dataclass(frozen=True, slots=True)
class Settled:
    """What was measured in the end. Seconds and tokens; `outcome` is one of `telemetry.names.OUTCOMES`."""

    outcome: str
    status: int
    total_s: float
    backend: str | None = None
    queue_s: float | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    code: str | None = None
    """The stable error code, if it ended in one."""
    parts: dict[str, Any] | None = None
    """Where its prompt parts from its conversation's last one (`telemetry.parting`)."""


def _name(value: str | None) -> str | None:
    if value is None:
        return None
    return value if _NAME.fullmatch(value) else "(not a name)"


def _dense(record: Record) -> Record:
    return {key: value for key, value in record.items() if value is not None and value != []}


def _footprint(footprint: Footprint | None) -> Record | None:
    if footprint is None:
        return None
    return {name: getattr(footprint, name) for name in Footprint._fields}


def _candidate(candidate: Candidate) -> Record:
    return _dense(
        {
            "backend": candidate.backend,
            "model": _name(candidate.model),
            "tier": candidate.tier,
            "reason": str(candidate.reason) if candidate.reason is not None else None,
            "limit": candidate.limit,
            "needed": candidate.needed,
            "terms": [[name, seconds] for name, seconds in candidate.terms],
            "total": candidate.total,
            "footprint": _footprint(candidate.footprint),
        }
    )


def _quota(short: Shortfall | None) -> Record | None:
    """The limit of its client that a request met; `seconds` until there is as much left as is needed."""
    return None if short is None else _dense({**short._asdict(), "quota": str(short.quota)})


def _decision(decision: Decision) -> Record:
    return _dense(
        {
            "verdict": str(decision.verdict),
            "reason": str(decision.reason),
            "now": decision.now,
            "roll": decision.roll,
            "backend": decision.backend,
            "model": _name(decision.model),
            "served_as": _name(decision.served_as),
            "tier": decision.tier,
            "footprint": _footprint(decision.footprint),
            "predicted_ttft": decision.predicted_ttft,
            "predicted_prefill": decision.predicted_prefill,
            "predicted_tpot": decision.predicted_tpot,
            "retry_after": decision.retry_after,
            "limit": decision.limit,
            "quota": _quota(decision.quota),
            "candidates": [_candidate(candidate) for candidate in decision.trace.candidates],
        }
    )


def _request(request: Request) -> Record:
    session = request.session
    return _dense(
        {
            "model": _name(request.model),
            "client": _name(request.client),
            "class": _name(request.klass),
            "label": request.label.name.lower(),
            "arrival": request.arrival,
            "deadline": request.deadline,
            "estimates": {
                str(_name(model)): {name: getattr(estimate, name) for name in _ESTIMATE}
                for model, estimate in request.estimates.items()
            },
            "max_tokens": request.max_tokens,
            "n": request.n,
            "stream": request.stream,
            "needs": sorted(request.needs & _ABILITIES),
            "consent": request.consent.name.lower(),
            "allowed": sorted(request.allowed) if request.allowed is not None else None,
            "attempt": request.attempt,
            "tried": sorted(request.tried),
            "session": blake2b(session.encode("utf-8", "replace"), digest_size=8).hexdigest() if session else None,
            "hits": {
                backend: {"share": hit.share, "trust": hit.trust, "pinned": hit.pinned}
                | ({} if hit.held is None else {"held": hit.held})
                | ({"pending": hit.pending, "sent": hit.sent, "ready": hit.ready} if hit.pending else {})
                for backend, hit in request.hits.items()
            },
        }
    )


def decision_record(decision: Decision, request: Request) -> Record:
    """One decision and the request it is about. Times are seconds on the gateway's monotonic clock."""
    return {"id": request.id, "request": _request(request), "decisions": [_decision(decision)]}


def entry_record(
    at: float,
    request: Request,
    decisions: Sequence[Decision],
    settled: Settled | None,
    failures: Sequence[FailureKind | None] = (),
) -> Record:
    """All decisions on one request, and what came of it. `at` is seconds since the epoch, when it was first decided.

    `failures`: how the attempt under each decision failed, None where it did not.
    """
    record: Record = {
        "id": request.id,
        "at": at,
        "request": _request(request),
        "decisions": [_decision(decision) for decision in decisions],
    }
    for row, kind in zip(record["decisions"], failures, strict=False):
        if kind is not None:
            row["failed"] = str(kind)
    if settled is not None:
        record["settled"] = _dense({name: getattr(settled, name) for name in Settled.__slots__})
    return record

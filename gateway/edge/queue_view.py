"""`GET /admin/queue`: what waits for each model, who waits and why, and who has been given how much. Seconds, tokens.

Names of keys and classes are the operator's own; sessions are shown as a hash that means nothing elsewhere.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from gateway.core.admission import class_named
from gateway.core.lease import Lease
from gateway.core.line import Queued
from gateway.core.look import Look
from gateway.core.plan import Plan
from gateway.core.reasons import SENTENCES, Reason
from gateway.core.request import Request
from gateway.core.snapshot import Snapshot

__all__ = ["LISTED", "queue_document", "session_mark"]

LISTED = 100
"""Waiting requests that are listed one by one, the next to be served first."""
_CLIENTS = 100

_SALT = os.urandom(16)

Waiters = Sequence[tuple[Request, Look | None]]
"""Waiting requests in the order in which they are considered, and what the last look at each found."""
_Received = Mapping[tuple[str, str], float]


def session_mark(session: str | None) -> str | None:
    """A session's name, hashed so that it can be told from others as long as this process lives, and not guessed."""
    return blake2b(session.encode("utf-8", "replace"), digest_size=4, key=_SALT).hexdigest() if session else None


def queue_document(
    queued: Mapping[str, Queued],
    waiters: Waiters,
    received: _Received,
    plan: Plan,
    leases: Iterable[Lease],
    snapshot: Snapshot,
    is_short: Callable[[Request], bool],
) -> dict[str, Any]:
    """The document, JSON-ready.

    `received`: device seconds by class and client; `leases`: those that are open; `is_short`: whether a limit of its
    client holds a request back.
    """
    now = snapshot.now
    waiting: Counter[tuple[str, str]] = Counter()
    for each in queued.values():
        waiting.update(each.clients)
    length = waiting.total()
    return {
        "waiting": length,
        "models": {name: _model(each, now) for name, each in queued.items()},
        "requests": [_request(request, look, is_short, now) for request, look in waiters],
        "requests_left_out": max(0, length - len(waiters)),
        "classes": _classes(received, plan, waiting),
        "clients": _clients(received, leases, waiting),
    }


def _model(each: Queued, now: float) -> dict[str, Any]:
    return {
        "requests": each.requests,
        "tokens": each.tokens,
        "seconds_to_drain": round(each.seconds, 3) if math.isfinite(each.seconds) else None,
        "oldest_seconds": round(max(0.0, now - each.oldest), 3),
    }


def _request(request: Request, look: Look | None, is_short: Callable[[Request], bool], now: float) -> dict[str, Any]:
    estimate = request.estimates.get(request.model) or next(iter(request.estimates.values()), None)
    reason = look.reason if look is not None else None
    if is_short(request):
        reason = Reason.OVER_QUOTA
    return {
        "id": request.id,
        "model": request.model,
        "client": request.client,
        "class": request.klass,
        "session": session_mark(request.session),
        "waited_seconds": round(max(0.0, now - request.arrival), 3),
        "deadline_in_seconds": round(request.deadline - now, 3),
        "attempt": request.attempt,
        "promised": request.promised is not None,
        "prompt_tokens": estimate.prompt if estimate is not None else None,
        "output_tokens": estimate.output * request.n if estimate is not None else None,
        "tier": estimate.tier if estimate is not None else None,
        "reason": str(reason) if reason is not None else None,
        "why": SENTENCES[reason] if reason is not None else "others go first, and there is no room for them yet",
        "backends": _backends(look),
        "weighed_seconds_ago": round(now - look.weighed_at, 3) if look and look.weighed_at is not None else None,
    }


def _backends(look: Look | None) -> dict[str, str]:
    """By backend, why the request did not go there when it was weighed; an open one is worth less than waiting."""
    if look is None:
        return {}
    return {name: str(reason or Reason.WORTH_WAITING) for name, reason in look.by_backend.items()}


def _classes(received: _Received, plan: Plan, waiting: Counter[tuple[str, str]]) -> list[dict[str, Any]]:
    seconds: dict[str, float] = {}
    for (klass, _), given in received.items():
        seconds[klass] = seconds.get(klass, 0.0) + given
    lengths: Counter[str] = Counter()
    for (klass, _), requests in waiting.items():
        lengths[klass] += requests
    whole = sum(seconds.values())
    return [
        {
            "class": klass,
            "weight": class_named(plan, klass).weight,
            "waiting": lengths[klass],
            "device_seconds": round(seconds.get(klass, 0.0), 3),
            "share": _share(seconds.get(klass, 0.0), whole),
        }
        for klass in sorted({*seconds, *lengths})
    ]


def _clients(received: _Received, leases: Iterable[Lease], waiting: Counter[tuple[str, str]]) -> list[dict[str, Any]]:
    """Those who wait or run first, then those who were given most."""
    running = Counter((lease.request.klass, lease.request.client) for lease in leases)
    whole = sum(received.values())
    busy = running + waiting
    names = sorted({*received, *busy}, key=lambda name: (-busy[name], -received.get(name, 0.0), name))
    return [
        {
            "client": name[1],
            "class": name[0],
            "waiting": waiting[name],
            "running": running[name],
            "device_seconds": round(received.get(name, 0.0), 3),
            "share": _share(received.get(name, 0.0), whole),
        }
        for name in names[:_CLIENTS]
    ]


def _share(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole > 0.0 else 0.0

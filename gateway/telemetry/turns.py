"""What a recording holds: each look at the queue as the arguments of `decide` and `pump`, and what they returned.

One JSON object a look. What seldom changes (the policy, what backends are, a request that waits) is written when it is
new, everything once in `EVERY` looks and after a gap, so that a file can be read from its middle. Numbers and names; no
prompt text, no session, and of the prompt's start one hash, which places cold prompts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields, replace
from enum import StrEnum
from typing import Any

import msgspec

from gateway.core.decision import Decision, Verdict
from gateway.core.plan import Plan
from gateway.core.reasons import Reason
from gateway.core.request import Hit, Request
from gateway.core.snapshot import BackendView, Snapshot

__all__ = ["EVERY", "VERSION", "How", "Look", "TurnWriter", "decision_row"]

VERSION = 1
EVERY = 2000
"""Looks after which everything is written anew."""
STANDING = ("backend", "offers", "pool", "block", "charge", "kept")
"""What a backend is, of its view; the other fields change from look to look."""
MOVING = tuple(field.name for field in fields(BackendView) if field.name not in STANDING)

HIT = tuple(field.name for field in fields(Hit))
"""In this order a hit is written, without the last ones that are as usual."""
_USUAL_HIT = tuple(getattr(Hit(0.0, 0.0), name) for name in HIT)

_NAME = re.compile(r"[\w./:@+-]{1,128}", re.ASCII)
_REQUEST = tuple(
    (field.name, field.default if field.default_factory is MISSING else field.default_factory())
    for field in fields(Request)
    if field.name != "hits"
)
_DECISION = tuple(
    (field.name, field.default) for field in fields(Decision) if field.name not in ("request", "now", "trace")
)
Row = dict[str, Any]


class How(StrEnum):
    """Who decided."""

    PUMP = "pump"
    """`pump`, on those that wait."""
    DOOR = "door"
    """`decide`, on one that came while others waited."""
    LINE = "line"
    """The queue itself, without a look at the backends: it is full, or its client has spent its limits."""

    @classmethod
    def of_no(cls, decision: Decision) -> How:
        """Who said no to one that just came."""
        return cls.LINE if decision.reason in (Reason.QUEUE_FULL, Reason.OVER_QUOTA) else cls.DOOR


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the queue. `requests` as they were decided upon, in the order of `decisions`."""

    number: int
    how: How
    plan: Plan
    snapshot: Snapshot
    requests: Sequence[Request]
    decisions: Sequence[Decision]


class TurnWriter:
    """Makes lines of looks, and remembers what it has written before."""

    def __init__(self) -> None:
        self._next = 0
        self._left = 0
        self._plan: Plan | None = None
        self._standing: dict[str, tuple[Any, ...]] = {}
        self._moving: dict[str, tuple[Any, ...]] = {}
        self._requests: dict[str, Request] = {}

    def line(self, look: Look) -> bytes:
        """The line of a look; whole by itself if it doesn't follow the one before it, or it is time."""
        row: Row = {"n": look.number, "how": look.how, "now": look.snapshot.now}
        if look.number != self._next or self._left <= 0:
            self._forget()
            row["begins"] = {"version": VERSION, "moving": MOVING, "hit": HIT}
        self._next, self._left = look.number + 1, self._left - 1
        if look.plan is not self._plan:
            row["plan"] = self._plan = look.plan
        if look.how is not How.LINE:
            self._fleet(look.snapshot, row)
        self._asked(look.requests, row)
        row["decisions"] = [_short(decision, look.snapshot.now) for decision in look.decisions]
        for decision in look.decisions:
            if decision.verdict is not Verdict.WAIT:
                self._requests.pop(decision.request, None)
        return msgspec.json.encode(row)

    def _forget(self) -> None:
        self._left = EVERY
        self._plan = None
        self._standing.clear()
        self._moving.clear()
        self._requests.clear()

    def _fleet(self, snapshot: Snapshot, row: Row) -> None:
        names = [view.backend.name for view in snapshot.views]
        standing = {view.backend.name: tuple([getattr(view, name) for name in STANDING]) for view in snapshot.views}
        if names != list(self._standing) or standing != self._standing:
            row["fleet"] = [dict(zip(STANDING, each, strict=True)) for each in standing.values()]
            self._standing = standing
            self._moving.clear()
        moved: Row = {}
        for view in snapshot.views:
            name, now = view.backend.name, tuple([getattr(view, each) for each in MOVING])
            if self._moving.get(name) != now:
                moved[name] = self._moving[name] = now
        if moved:
            row["views"] = moved

    def _asked(self, requests: Sequence[Request], row: Row) -> None:
        """Requests that are new, and the hits of those that wait on, as far as these changed."""
        new: list[Row] = []
        hits: Row = {}
        for request in requests:
            known = self._requests.get(request.id)
            if known is request:
                continue
            self._requests[request.id] = request
            if known is not None and all(getattr(known, name) is getattr(request, name) for name, _ in _REQUEST):
                changed: Row = {name: _hit(hit) for name, hit in request.hits.items() if known.hits.get(name) != hit}
                changed.update((name, None) for name in known.hits if name not in request.hits)
                hits[request.id] = changed
            else:
                held = {name: _hit(hit) for name, hit in request.hits.items()}
                new.append({**_sparse(_REQUEST, discreet(request)), "hits": held})
        if new:
            row["requests"] = new
        if hits:
            row["hits"] = hits


def _hit(hit: Hit) -> list[Any]:
    values = [getattr(hit, name) for name in HIT]
    while values and values[-1] == _USUAL_HIT[len(values) - 1]:
        values.pop()
    return values


def discreet(request: Request) -> Request:
    """The same request as far as decisions go, without anything that a client may have put words into."""
    return replace(
        request,
        model=_name(request.model),
        client=_name(request.client),
        session=None,
        thread=0,
        lost=(),
        shape=request.shape._replace(reasoning=_name(request.shape.reasoning)),
    )


def _name(value: str) -> str:
    return value if not value or _NAME.fullmatch(value) else "(not a name)"


def _short(decision: Decision, now: float) -> Row | list[Any]:
    if decision.verdict is Verdict.WAIT and decision.now == now:
        return [decision.request, decision.reason, decision.roll]
    row = decision_row(decision)
    return row if decision.now != now else {name: value for name, value in row.items() if name != "now"}


def decision_row(decision: Decision) -> Row:
    """A decision as a record; the trace only where it ended the wait."""
    row = {"request": decision.request, "now": decision.now, **_sparse(_DECISION, decision)}
    if decision.verdict is not Verdict.WAIT:
        row["candidates"] = decision.trace.candidates
    return row


def _sparse(names: Sequence[tuple[str, Any]], value: object) -> Row:
    found = [(name, getattr(value, name), usual) for name, usual in names]
    return {name: each for name, each, usual in found if each is not usual and each != usual}

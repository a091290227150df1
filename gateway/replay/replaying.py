"""Recorded looks, decided again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gateway.core.decide import decide
from gateway.core.decision import Decision
from gateway.core.plan import Plan
from gateway.core.pump import pump
from gateway.core.request import Request
from gateway.core.snapshot import Snapshot
from gateway.replay.reading import Recorded
from gateway.telemetry.turns import How

__all__ = ["again", "under"]


def again(look: Recorded) -> list[Decision] | None:
    """What is decided now upon the same requests, on the same snapshot, with the same chances.

    In the order of the requests, though perhaps not upon all. None for the noes of the queue itself, which rest on no
    backend.
    """
    if look.how is How.LINE:
        return None
    rolls = {row["request"]: row["roll"] for row in look.decisions}
    if look.how is How.DOOR:
        moments = {row["request"]: row["now"] for row in look.decisions}
        return [
            decide(look.plan, request, look.snapshot, moments[request.id], rolls[request.id])
            for request in look.requests
        ]
    chance = 0.0

    def order() -> Iterator[Request]:
        nonlocal chance
        for request in look.requests:
            chance = rolls[request.id]
            yield request

    return pump(look.plan, order(), look.snapshot, look.snapshot.now, lambda: chance)


def under(look: Recorded, plan: Plan) -> Recorded:
    """The same look under another policy, on what backends hold and do in the recording.

    Left out are backends that this policy lacks, and those that only it has: nothing is known of how they were.
    """
    declared = {backend.name: backend for backend in plan.backends}
    known = [view for view in look.snapshot.views if view.name in declared]
    views = tuple(replace(view, backend=declared[view.name]) for view in known)
    return replace(look, plan=plan, snapshot=Snapshot(look.snapshot.now, views))

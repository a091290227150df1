"""One of several open backends that cost about the same, or a full one that is worth the wait."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter

from xxhash import xxh3_64_intdigest

from gateway.core.reasons import Reason
from gateway.core.weighing import Ask, Weighing

__all__ = ["cheapest", "choose", "rendezvous", "worth_waiting"]

_EQUAL = 0.03
"""Costs within 3 % are equal: with several gateways, chance among them keeps the herd apart."""
_COLD_SHARE, _COLD_FLOOR = 0.05, 0.05
"""Costs within 5 % or 50 ms of the best are equal for a prompt that is cached nowhere."""

_BEHIND = 0.25
"""Of as many as wait by choice already, the part that is taken to come after and be made to wait: 0 lets short chats
wait for each other until a third is late, 1 takes in more than an overloaded fleet can decode (by simulation)."""
_UNTIL_READ = (Reason.PREFIX_IN_PREFILL, Reason.PREFILL_BACKLOG)

_total = attrgetter("total")


def cheapest(weighed: Sequence[Weighing]) -> Weighing:
    """The one with the lowest cost; the first of equals."""
    return min(weighed, key=_total)


def worth_waiting(ask: Ask, best: Weighing, best_open: Weighing) -> bool:
    """Whether to wait for `best`, which is full, rather than to start on `best_open`, which costs more.

    Whoever takes the next place makes those wait that come after, the more the larger the crowd. Without that price
    each of a crowd waits until waiting costs as much as what it avoids, and nobody gains.
    """
    costs = ask.plan.costs
    crowd = 0.0 if best.awaited else _BEHIND * best.wait * sum([view.awaited for view in ask.views])
    slack = max(costs.move_share * best.total, costs.move_floor)
    return best_open.total > best.total + slack + crowd and ask.waited <= _patience(ask, best)


def _patience(ask: Ask, best: Weighing) -> float:
    """Seconds that a request may wait by choice: half its TTFT goal and at most the aging limit, or half of that.

    For a prefix that is being read it may wait up to the aging limit: when that ends is known better than when there is
    room.
    """
    aging = ask.plan.queue.aging
    if best.awaited and best.reason in _UNTIL_READ:
        return aging
    goal = ask.goal
    return 0.5 * (aging if goal is None else min(goal, 2.0 * aging))


def choose(open_: Sequence[Weighing], best: Weighing, roll: float) -> Weighing:
    """Pick among the open backends that cost about as much as the best of them.

    A conversation stays where it was. Else a cold prompt goes where its hash points, so that every gateway sends the
    same new prefix to the same backend; among equally warm ones `roll` picks.
    """
    if len(open_) == 1:
        return best
    cached = best.cached
    placement = best.ask.request.placement
    if cached == 0 and placement:
        worst = best.total + max(_COLD_SHARE * best.total, _COLD_FLOOR)
    else:
        worst = best.total * (1.0 + _EQUAL)
    equals = [w for w in open_ if w.total <= worst and w.cached == cached]
    if len(equals) == 1:
        return best
    home = best.ask.request.home
    if home is not None:
        for weighing in equals:
            if weighing.view.backend.name == home:
                return weighing
    if cached == 0 and placement:
        return rendezvous(equals, placement)
    return equals[int(roll * len(equals))]


def rendezvous(weighed: Sequence[Weighing], placement: int) -> Weighing:
    """Weighted rendezvous hashing: argmax of -w/ln(u), with u the hash of placement and name as a number in (0, 1).

    The weight is the free share of slots or pool, whichever is less.
    """
    return max(weighed, key=lambda w: _free_share(w) / -math.log(_unit(w.view.backend.name, placement)))


def _unit(name: str, placement: int) -> float:
    return (xxh3_64_intdigest(name.encode(), placement & 0xFFFFFFFFFFFFFFFF) + 1) / (2**64 + 2)


def _free_share(weighing: Weighing) -> float:
    view = weighing.view
    share = 1.0 - view.running / view.slots if view.slots else 0.0
    if view.pool > 0:
        free = view.free / view.pool
        if free < share:
            share = free
    return max(share, 0.01)

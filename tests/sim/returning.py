"""Clients who do as they are told: whoever is turned away comes back after the seconds of its Retry-After header."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gateway.sim.engine_model import EngineModel
from gateway.sim.events import Action, Arrival, Arrived, Event, Place, Refuse, WakeAt
from gateway.sim.gateway_policy import GatewayPolicy

__all__ = ["Returning", "Visit"]


@dataclass(slots=True)
class Visit:
    """One that came back when it was told to. Moments in seconds; `waited` None: it was turned away again."""

    request: str
    told_at: float
    came_at: float
    number: int
    """Of the visits of this request, the first being its return after the first refusal."""
    waited: float | None = None


@dataclass(slots=True)
class Returning:
    """The gateway, seen by clients who come back until they are served, each at most `most` times."""

    policy: GatewayPolicy
    most: int = 10
    visits: list[Visit] = field(default_factory=list)
    refused: int = 0
    """Requests that were turned away when they first came."""
    _arrivals: dict[str, Arrival] = field(default_factory=dict)
    _here: dict[str, Visit] = field(default_factory=dict)
    _away: list[tuple[float, int, str, float]] = field(default_factory=list)

    def on_event(self, now: float, event: Event, engines: Mapping[str, EngineModel]) -> Iterable[Action]:
        """Pass the event on, then let in who is due."""
        actions: list[Action] = []
        if isinstance(event, Arrived):
            self._arrivals[event.arrival.request.id] = event.arrival
        actions += self._seen(now, self.policy.on_event(now, event, engines))
        while self._away and self._away[0][0] <= now:
            _, _, request_id, told_at = heapq.heappop(self._away)
            visit = Visit(request_id, told_at, now, 1 + sum(each.request == request_id for each in self.visits))
            self.visits.append(visit)
            self._here[request_id] = visit
            again = Arrived(self._arrivals[request_id])
            actions += self._seen(now, self.policy.on_event(now, again, engines))
        return actions

    def _seen(self, now: float, actions: Iterable[Action]) -> Iterator[Action]:
        for action in actions:
            if isinstance(action, Place):
                visit = self._here.pop(action.request_id, None)
                if visit is not None:
                    visit.waited = now - visit.came_at
            elif isinstance(action, Refuse):
                before = self._here.pop(action.request_id, None)
                decision = self.policy.declined.pop(action.request_id)
                self.refused += before is None
                if decision.retry_after is not None and (before is None or before.number < self.most):
                    back = now + decision.retry_after
                    heapq.heappush(self._away, (back, len(self.visits), action.request_id, now))
                    yield WakeAt(back)
                    continue
                self.policy.declined[action.request_id] = decision
            yield action

"""Two policies that bind at once, as plain proxies do: round robin and least requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from gateway.sim.engine_model import EngineModel
from gateway.sim.events import Action, Arrived, Ended, Event, Place

__all__ = ["LeastRequests"]


class LeastRequests:
    """Places every request at once on the engine that has fewest; the first by name of equals."""

    def __init__(self) -> None:
        self._inside: Counter[str] = Counter()

    def on_event(self, now: float, event: Event, engines: Mapping[str, EngineModel]) -> Iterable[Action]:
        if isinstance(event, Arrived):
            name = min(sorted(engines), key=lambda each: self._inside[each])
            self._inside[name] += 1
            yield Place(event.arrival.request.id, name)
        elif isinstance(event, Ended):
            self._inside[event.engine] -= 1

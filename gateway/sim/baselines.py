"""Policies of plain proxies, which send each request on at once: in turn, by numbers, by prefix.

They know which engines can hold a request, which is more than most real ones know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from gateway.sim.engine_model import EngineModel
from gateway.sim.events import Action, Arrival, Arrived, Ended, Event, Left, Lost, Place

__all__ = ["BASELINES", "LeastRequests", "PrefixAffinity", "RoundRobin"]


class _Proxy:
    """Places every request at once, on an engine that `choose` names among those that could hold it."""

    def __init__(self) -> None:
        self.inside: Counter[str] = Counter()
        """Requests by engine."""
        self._lost: dict[str, Arrival] = {}

    def on_event(self, _now: float, event: Event, engines: Mapping[str, EngineModel]) -> Iterable[Action]:
        """Place what comes, count what goes; what a crash lost is sent once more."""
        if isinstance(event, Arrived):
            self._lost[event.arrival.request.id] = event.arrival
            yield self._place(event.arrival, engines)
        elif isinstance(event, Ended):
            self.inside[event.engine] -= 1
            self._lost.pop(event.finished.id, None)
        elif isinstance(event, Left) and event.engine is not None:
            self.inside[event.engine] -= 1
        elif isinstance(event, Lost):
            self.inside[event.engine] -= 1
            yield self._place(self._lost[event.request_id], engines)

    def _place(self, arrival: Arrival, engines: Mapping[str, EngineModel]) -> Place:
        asked = arrival.request
        tokens = asked.prompt_tokens + asked.output_tokens
        fitting = [name for name, engine in sorted(engines.items()) if tokens <= engine.profile.max_model_len]
        name = self.choose(arrival, fitting)
        self.inside[name] += 1
        return Place(asked.id, name)

    def choose(self, _arrival: Arrival, fitting: list[str]) -> str:
        """One of `fitting`, which are in order of their names and never none; here the first."""
        return fitting[0]


class RoundRobin(_Proxy):
    """Engines in turn."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = 0

    def choose(self, _arrival: Arrival, fitting: list[str]) -> str:
        """The next one."""
        self._turn += 1
        return fitting[self._turn % len(fitting)]


class LeastRequests(_Proxy):
    """The engine that has fewest requests; the first of equals."""

    def choose(self, _arrival: Arrival, fitting: list[str]) -> str:
        """The one with fewest."""
        return min(fitting, key=lambda each: self.inside[each])


class PrefixAffinity(_Proxy):
    """SGLang's cache_aware rule: the engine that was sent the longest part of this prompt, if that is a good part.

    Else the one that was sent least text; and while loads are far apart, the one with fewest requests.
    """

    GOOD = 0.3
    """Part of the prompt that must match (its cache_threshold)."""
    APART, TIMES = 64, 1.5
    """Loads are far apart when most - least is over the one and most over the other times least."""
    STEP = 256
    """Tokens by which prefixes are compared here; characters there."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, set[int]] = {}

    def choose(self, _arrival: Arrival, fitting: list[str]) -> str:
        """By prefix, by size of what was sent, or by numbers."""
        asked = _arrival.request
        keys, parent = [], 0
        for end in range(self.STEP, asked.prompt_tokens + 1, self.STEP):
            parent = asked.text.key(end - self.STEP, end, parent)
            keys.append(parent)
        seen = {name: self._seen.setdefault(name, set()) for name in fitting}
        least = min(fitting, key=lambda each: self.inside[each])
        most = max(self.inside[each] for each in fitting)
        chosen = least
        if not (most - self.inside[least] > self.APART and most > self.TIMES * self.inside[least]):
            lengths = {name: _matching(keys, seen[name]) for name in fitting}
            chosen = max(fitting, key=lambda each: lengths[each])
            if not keys or lengths[chosen] <= self.GOOD * len(keys):
                chosen = min(fitting, key=lambda each: len(seen[each]))
        seen[chosen].update(keys)
        return chosen


def _matching(keys: list[int], seen: set[int]) -> int:
    for number, key in enumerate(keys):
        if key not in seen:
            return number
    return len(keys)


BASELINES: Mapping[str, Callable[[], _Proxy]] = {
    "round-robin": RoundRobin,
    "least-requests": LeastRequests,
    "prefix-affinity": PrefixAffinity,
}
"""By the names that the command line uses."""

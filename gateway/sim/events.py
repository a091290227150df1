"""What happens in a simulated run, and what a policy can do about it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from gateway.sim.engine_model import HEALTHY, EngineModel, Finished, Slowdown
from gateway.sim.sequence import SimRequest

__all__ = [
    "Action",
    "Arrival",
    "Arrived",
    "Breakdown",
    "Ended",
    "Event",
    "FirstToken",
    "Left",
    "Lost",
    "Place",
    "Policy",
    "Refuse",
    "Tick",
    "WakeAt",
    "Withdraw",
]


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request and the second at which it comes."""

    at_s: float
    request: SimRequest
    session: str = ""
    patience_s: float = math.inf
    """Seconds after which the client leaves if it has not got its whole answer."""


@dataclass(frozen=True, slots=True)
class Breakdown:
    """From `at_s` on an engine is in this state; the defaults make it well again."""

    at_s: float
    engine: str
    slowdown: Slowdown = HEALTHY
    hang: bool = False
    """No iteration begins."""
    crash: bool = False
    """Cache and requests are lost at that moment; the engine is empty, and goes on unless it hangs as well."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A request came and waits for the policy to place it."""

    arrival: Arrival


@dataclass(frozen=True, slots=True)
class FirstToken:
    """The prefill of a placed request is done."""

    request_id: str
    engine: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A placed request has its whole answer, or was given up by its engine."""

    engine: str
    finished: Finished


@dataclass(frozen=True, slots=True)
class Lost:
    """An engine crashed with a request in it, which now waits to be placed again, from its first token."""

    request_id: str
    engine: str


@dataclass(frozen=True, slots=True)
class Left:
    """A client ran out of patience: its request is gone from the queue, or from the engine named."""

    request_id: str
    engine: str | None


@dataclass(frozen=True, slots=True)
class Tick:
    """A moment that the policy asked for with `WakeAt`."""


Event = Arrived | FirstToken | Ended | Lost | Left | Tick


@dataclass(frozen=True, slots=True)
class Place:
    """Send a waiting request to an engine now."""

    request_id: str
    engine: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Turn a waiting request down."""

    request_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Ask for a `Tick`."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Take a placed request back from its engine, which drops it; it waits again, to be placed or refused."""

    request_id: str


Action = Place | Refuse | WakeAt | Withdraw


class Policy(Protocol):
    """Decides where and whether; it keeps its own queue and its own view of the engines."""

    def on_event(self, now: float, event: Event, engines: Mapping[str, EngineModel]) -> Iterable[Action]:
        """What to do about `event`; any number of waiting requests may be placed, refused or left waiting."""
        ...

"""The backend works."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.reasons import Reason
from gateway.core.snapshot import Health
from gateway.core.weighing import Weighing

__all__ = ["Healthy"]


_WORKING = (Health.UP, Health.TRIAL)


@dataclass(frozen=True, slots=True)
class Healthy:
    """Passes backends that are up or on trial. One that was not probed yet is taken for one that is still loading."""

    def check(self, candidate: Weighing) -> Reason | None:
        """DOWN, LOADING, DRAINING, BREAKER_OPEN or RESTING (needed: seconds until it is tried), or None."""
        view = candidate.view
        health = view.health
        if health in _WORKING:
            return None
        if health is Health.OPEN or health is Health.RESTING:
            if view.retry_at is not None:
                candidate.limit = 0.0
                candidate.needed = max(0.0, view.retry_at - candidate.ask.now)
            return Reason.BREAKER_OPEN if health is Health.OPEN else Reason.RESTING
        if health is Health.DRAINING:
            return Reason.DRAINING
        return Reason.DOWN if health is Health.DOWN else Reason.LOADING

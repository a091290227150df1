"""What the dispatcher tells of its decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gateway.core.decision import Decision
from gateway.core.plan import Plan
from gateway.core.request import Request
from gateway.core.snapshot import Snapshot
from gateway.telemetry.turns import How

__all__ = ["Observer", "Recorder"]


class Observer(Protocol):
    """Who writes down what was decided; called on the loop, must not block."""

    def pumped(self, seconds: float, decisions: int) -> None:
        """One look at the queue took this long."""

    def decided(self, request: Request, decision: Decision) -> None:
        """A decision that ends the wait: admitted, shed or rejected."""


class Recorder(Protocol):
    """Who keeps all of it, so that it can be decided again; called on the loop, must not block."""

    def looked(
        self, how: How, plan: Plan, snapshot: Snapshot, requests: Sequence[Request], decisions: Sequence[Decision]
    ) -> None:
        """These requests were decided upon on that snapshot, in this order."""

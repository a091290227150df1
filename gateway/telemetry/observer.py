"""What the dispatcher tells of its decisions."""

from __future__ import annotations

from typing import Protocol

from gateway.core.decision import Decision
from gateway.core.request import Request

__all__ = ["Observer"]


class Observer(Protocol):
    """Who writes down what was decided; called on the loop, must not block."""

    def pumped(self, seconds: float, decisions: int) -> None:
        """One look at the queue took this long."""

    def decided(self, request: Request, decision: Decision) -> None:
        """A decision that ends the wait: admitted, shed or rejected."""

"""The backend keeps the stored answer that the request refers to."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.reasons import Reason
from gateway.core.weighing import Weighing

__all__ = ["KeepsAnswer"]


@dataclass(frozen=True, slots=True)
class KeepsAnswer:
    """Engines keep answers (`previous_response_id`) in their own memory, each its own."""

    def check(self, candidate: Weighing) -> Reason | None:
        """NOT_THE_KEEPER, or None."""
        keeper = candidate.ask.request.keeper
        return None if keeper is None or keeper == candidate.view.name else Reason.NOT_THE_KEEPER

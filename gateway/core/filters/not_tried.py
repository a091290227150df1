"""The backend has not failed this very request."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.reasons import Reason
from gateway.core.weighing import Weighing

__all__ = ["NotTried"]


@dataclass(frozen=True, slots=True)
class NotTried:
    """No request goes twice to a backend that failed it."""

    def check(self, candidate: Weighing) -> Reason | None:
        """ALREADY_TRIED or None."""
        return Reason.ALREADY_TRIED if candidate.view.backend.name in candidate.ask.request.tried else None

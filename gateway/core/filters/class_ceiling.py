"""Room under the ceiling of the request's class."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.admission import kv_limit
from gateway.core.reasons import Reason
from gateway.core.weighing import Weighing

__all__ = ["ClassCeiling"]


@dataclass(frozen=True, slots=True)
class ClassCeiling:
    """Keeps the top of the pool for classes with a higher ceiling, so that a burst of them finds room at once.

    Counted over all that the backend holds, as in trunk reservation. A request that has waited for longer than the
    aging limit is no longer held back.
    """

    def check(self, candidate: Weighing) -> Reason | None:
        """CLASS_CEILING, in tokens, or None."""
        ceiling = candidate.ask.klass.kv_ceiling
        view = candidate.view
        if ceiling >= 1.0 or view.pool <= 0 or candidate.ask.aged:
            return None
        free = kv_limit(view, ceiling) - view.reserved
        if candidate.kv <= free:
            return None
        candidate.limit = free
        candidate.needed = candidate.kv
        return Reason.CLASS_CEILING

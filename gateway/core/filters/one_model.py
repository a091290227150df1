"""An engine that holds one model at a time runs that one."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.reasons import Reason
from gateway.core.weighing import Weighing

__all__ = ["OneModel"]


@dataclass(frozen=True, slots=True)
class OneModel:
    """Keeps an engine that swaps models (llama-swap, Ollama on a small card) from doing so under a running request.

    It is asked for another model once nothing runs there; a request that waited for longer than the aging limit has the
    engine kept free for its model (`admission.with_claim`), so that models take turns in batches.
    """

    def check(self, candidate: Weighing) -> Reason | None:
        """OTHER_MODEL, or None."""
        view = candidate.view
        if not view.backend.one_model or not view.running or view.busy_with is None:
            return None
        return None if candidate.offer.answers_to(view.busy_with) else Reason.OTHER_MODEL

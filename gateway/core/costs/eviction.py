"""The price of pushing another conversation out of its cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.core.weighing import Weighing

__all__ = ["Eviction"]


@dataclass(frozen=True, slots=True)
class Eviction:
    """Seconds to read again what loses its place, by the probability that it comes back (`Hit.evicts`).

    A title or a summary of two hundred tokens costs next to nothing anywhere, but the conversation whose slot it takes
    may cost minutes.
    """

    name: ClassVar[str] = "eviction"

    def seconds(self, weighing: Weighing) -> float:
        """0 where there is room beside everything that is held."""
        hit = weighing.ask.request.hits.get(weighing.view.backend.name)
        if hit is None or hit.evicts == 0.0:
            return 0.0
        return weighing.offer.speed.prefill.seconds(int(hit.evicts), 0) * weighing.view.prefill_factor

"""The price of leaving the backend that holds the conversation."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.weighing import Weighing

__all__ = ["MovePenalty"]


@dataclass(frozen=True, slots=True)
class MovePenalty:
    """Hysteresis: moving must be better by a share of the completion time, and by a floor in seconds.

    Prefill of what isn't cached is in the completion time already; this pays for the uncertainty of both estimates, and
    for the turns to come. A conversation that moved, from a backend that was ill say, stays where it is now: the cache
    that it left behind is no home any more.
    """

    share: float = 0.10
    floor: float = 0.15

    @property
    def name(self) -> str:
        """What the trace calls it."""
        return "move_penalty"

    def seconds(self, weighing: Weighing) -> float:
        """0 at home, or when the prompt has no home."""
        ask = weighing.ask
        home = ask.home
        if home is None or ask.seat == weighing.view.backend.name:
            return 0.0
        hit = ask.request.hits.get(weighing.view.backend.name)
        if ask.seat is None and hit is not None and hit.share * hit.trust >= home:
            return 0.0
        share = self.share * weighing.completion
        if share > self.floor:
            return share
        return self.floor

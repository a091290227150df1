"""What follows when an engine finds a request too long that was taken to fit: what is known of its prompt now, and
whether the same engine may be asked once more, for an answer that does fit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.core.backend import Offer
from gateway.core.demand import FLOOR_OUTPUT
from gateway.core.request import Estimate, Request

__all__ = ["Overflowed", "after_overflow"]


@dataclass(frozen=True, slots=True)
class Overflowed:
    """What an engine said: its limit, the tokens that were asked for, and those of the prompt alone, as it counted.

    None: it does not say.
    """

    limit: int | None = None
    requested: int | None = None
    prompt: int | None = None

    @property
    def least(self) -> int | None:
        """Tokens that a backend must hold at least to serve it as it was sent."""
        if self.requested is not None:
            return self.requested
        return None if self.limit is None else self.limit + 1


def after_overflow(request: Request, offer: Offer, sent: int | None, said: Overflowed) -> tuple[Request, bool]:
    """The request with what is known of its length now, and whether this very backend may serve it after all.

    With a smaller output budget than was `sent`: for the prompt as the engine counted it, or, where it tells no number,
    once, as far on the high side of the estimate as leaves room for a likely answer.
    """
    known = request.estimates.get(offer.model)
    if known is not None and _may_be_longer(known, said):
        window = offer.window if said.limit is None else min(offer.window, said.limit)
        prompt = said.prompt if said.prompt is not None else _taken_for(known, window)
        if window - prompt >= FLOOR_OUTPUT and (sent is None or window - prompt < sent):
            tier = "C" if said.prompt is not None else known.tier
            told = replace(known, prompt=prompt, prompt_high=prompt, tier=tier, prompt_floor=None, prompt_ceiling=None)
            return replace(request, estimates={**request.estimates, offer.model: told}), True
    least = said.prompt if said.prompt is not None else said.least
    return (request if least is None else request.at_least(least)), False


def _may_be_longer(known: Estimate, said: Overflowed) -> bool:
    """Whether the engine tells something new of the prompt; without a number that it is longer than was guessed."""
    if said.prompt is not None:
        return said.prompt != known.prompt or known.tier != "C"
    return said.requested is None and known.tier != "C" and known.prompt < known.prompt_high


def _taken_for(known: Estimate, window: int) -> int:
    """Tokens that a prompt is taken to have which has more than was guessed."""
    return max(known.prompt_high, min(known.prompt_most, window - max(known.output, FLOOR_OUTPUT)))

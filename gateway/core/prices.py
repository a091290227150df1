"""What a waiting request is expected to cost, in device seconds, before it is known where it will run."""

from __future__ import annotations

from gateway.core.fair_share import cost_of
from gateway.core.request import Request

__all__ = ["Prices"]

_WEIGHT = 0.05
"""Of one dispatch in a model's mean."""
_MODELS = 1024


class Prices:
    """Device seconds a token by model, averaged over what was dispatched.

    A model of which nothing is known costs what the others do on average; if none is known, a token is the unit.
    """

    __slots__ = ("_common", "_rates")

    def __init__(self) -> None:
        self._rates: dict[str, float] = {}
        self._common: float | None = None

    def of(self, request: Request) -> float:
        """Device seconds of a request, or tokens while nothing is known."""
        rate = self._rates.get(request.model, self._common)
        cost = cost_of(request)
        return float(cost) if rate is None else cost * rate

    def learn(self, model: str, tokens: int, seconds: float) -> None:
        """One request of so many tokens was dispatched where it takes so many device seconds."""
        if tokens <= 0 or seconds <= 0.0:
            return
        rate = seconds / tokens
        self._common = rate if self._common is None else self._common + _WEIGHT * (rate - self._common)
        known = self._rates.get(model)
        if known is None and len(self._rates) >= _MODELS:
            del self._rates[next(iter(self._rates))]
        self._rates[model] = rate if known is None else known + _WEIGHT * (rate - known)

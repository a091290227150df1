"""How long answers get: survival sketches from the very client and shape up to the model, each leaning on the wider."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from gateway.core.estimators.answer_shape import PLAIN, AnswerShape, OutputKind
from gateway.core.estimators.recalibration import Recalibration
from gateway.core.estimators.survival import SurvivalCurve, SurvivalSketch, lognormal_counts

__all__ = ["MOST_KEYS", "Lengths", "Level", "OutputKey", "OutputKind", "OutputLengthEstimator"]

_PSEUDO = 20.0
MOST_KEYS = 2048
"""Keys with counts of their own, about 9 kB each; the one that has learned nothing for longest goes."""
_MOST_CURVES = 512
_STALE, _MEMORY = 0.005, 2000
"""A curve is made anew once 0.5 % of what it was made of (500 samples, on four levels) is new: less moves no quantile
by anything that matters, and making one takes 0.1 ms."""

_PRIORS: dict[OutputKind, tuple[list[float], list[float]]] = {
    OutputKind.CHAT: lognormal_counts(300.0, 1.1),
    OutputKind.TOOLS: lognormal_counts(120.0, 1.0),
    OutputKind.REASONING: lognormal_counts(1500.0, 1.0),
}
"""Log-normal by median (tokens) and sigma."""


Level: TypeAlias = tuple[str | bool, ...]
"""What is learned under: of an OutputKey the parts that matter there."""


class OutputKey(NamedTuple):
    """Whose answers: by model, client, route (the name that was asked for) and shape. Hashed often."""

    model: str
    client: str = ""
    route: str = ""
    shape: AnswerShape = PLAIN

    @property
    def levels(self) -> tuple[Level, ...]:
        """The keys that it learns under, most specific first: itself, client, shape on the model, model."""
        model, client, route, shape = self
        return (
            (model, client, route, *shape),
            (model, client),
            (model, shape.tools, shape.reasoning),
            (model,),
        )


@dataclass(slots=True)
class Lengths:
    """What one level of a key has learned: counts, how far quantiles had to be moved, and how many samples ever."""

    sketch: SurvivalSketch = field(default_factory=SurvivalSketch)
    recalibration: Recalibration = field(default_factory=Recalibration)
    samples: int = 0


@dataclass(slots=True)
class _Curve:
    """The curve that a key's levels make together, when all of them had `samples` behind them."""

    curve: SurvivalCurve
    samples: int


class OutputLengthEstimator:
    """Distribution of answer lengths in tokens, by OutputKey.

    A key with few samples answers mostly as the next wider one does, which counts as 20 samples; so there is no cliff
    between cold and warm.
    """

    def __init__(self) -> None:
        self.lengths: dict[Level, Lengths] = {}
        """By level, least recently taught first."""
        self._curves: dict[OutputKey, _Curve] = {}
        self._priors = {kind: SurvivalCurve(*counts) for kind, counts in _PRIORS.items()}

    def quantile(self, q: float, key: OutputKey, generated: int = 0, cap: int | None = None) -> int:
        """The total length, in tokens, that a share `q` stays under given that `generated` exist; at most `cap`.

        `generated` matters: tails are heavy, so a long answer is expected to become longer still.
        """
        if not generated:
            own = self.lengths.get(key.levels[0])
            if own is not None:
                q = own.recalibration.level(q)
        length = self._curve(key).quantile(q, generated)
        return length if cap is None else min(cap, length)

    def mean(self, key: OutputKey, generated: int = 0, cap: int | None = None) -> float:
        """Expected further tokens of an answer that has `generated` and is cut at `cap`."""
        curve = self._curve(key)
        if generated == 0 and cap is None:
            return curve.mean
        return curve.remaining(generated, cap if cap is not None else 1 << 30)

    def learn(self, key: OutputKey, tokens: int, finished: bool, now: float | None = None) -> None:
        """Learn one answer of `tokens` tokens, for its key and all wider ones.

        `finished`: the model ended it (stop, tool calls). Not so: a length limit, a client that left, an error.
        """
        levels = key.levels
        known = self._curves.get(key)
        for level in levels:
            lengths = self._lengths(level)
            lengths.sketch.learn(tokens, finished, now)
            lengths.samples += 1
        if known is not None:  # what was predicted of answers like this one
            self.lengths[levels[0]].recalibration.learn(known.curve.left(max(0, tokens - 1)), finished)

    def _lengths(self, level: Level) -> Lengths:
        lengths = self.lengths.pop(level, None)
        if lengths is None:
            lengths = Lengths()
            if len(self.lengths) >= MOST_KEYS:
                del self.lengths[next(iter(self.lengths))]
        self.lengths[level] = lengths
        return lengths

    def _curve(self, key: OutputKey) -> SurvivalCurve:
        known = [lengths for level in key.levels if (lengths := self.lengths.get(level)) is not None]
        if not known:
            return self._priors[key.shape.kind]
        samples = sum([lengths.samples for lengths in known])
        found = self._curves.get(key)
        if found is not None and 0 <= samples - found.samples <= _STALE * min(found.samples, _MEMORY):
            return found.curve
        ended, reached = _PRIORS[key.shape.kind]
        for lengths in reversed(known):
            ended, reached = lengths.sketch.leaning_on(ended, reached, _PSEUDO)
        if found is None and len(self._curves) >= _MOST_CURVES:
            del self._curves[next(iter(self._curves))]
        curve = SurvivalCurve(ended, reached)
        self._curves[key] = _Curve(curve, samples)
        return curve

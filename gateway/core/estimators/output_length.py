"""How long answers get: survival sketches per client and model, each leaning on the next wider one while young."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from gateway.core.estimators.survival import SurvivalCurve, SurvivalSketch, lognormal_counts

__all__ = ["OutputKey", "OutputKind", "OutputLengthEstimator"]

_PSEUDO = 20.0
_MAX_NODES = 4096


class OutputKind(StrEnum):
    """What is asked for; answers of these kinds differ in length by an order of magnitude."""

    CHAT = "chat"
    TOOLS = "tools"
    """The request offers tools: mostly short calls."""
    REASONING = "reasoning"
    """The model thinks before it answers, and the thoughts count."""


_PRIORS: dict[OutputKind, tuple[list[float], list[float]]] = {
    OutputKind.CHAT: lognormal_counts(300.0, 1.1),
    OutputKind.TOOLS: lognormal_counts(120.0, 1.0),
    OutputKind.REASONING: lognormal_counts(1500.0, 1.0),
}
"""Log-normal by median (tokens) and sigma."""


class OutputKey(NamedTuple):
    """Whose answers: by model, client and kind; the client may be empty. A named tuple, since it is hashed often."""

    model: str
    client: str = ""
    kind: OutputKind = OutputKind.CHAT

    @property
    def wider(self) -> OutputKey | None:
        """The next wider key, None for a model's own (its parent is the prior)."""
        return OutputKey(self.model, "", self.kind) if self.client else None


@dataclass(slots=True)
class _Node:
    """A key's own counts, and the curve that they make with all wider ones."""

    sketch: SurvivalSketch
    changes: int = 0
    curve: SurvivalCurve | None = None
    seen: tuple[int, int] = (-1, -1)
    """Changes of this node and of the wider one when `curve` was built."""


class OutputLengthEstimator:
    """Distribution of answer lengths in tokens, by OutputKey.

    A key with few samples answers mostly as its parent does (client and model, then model, then a prior): the parent
    counts as 20 samples, so there is no cliff between cold and warm.
    """

    def __init__(self) -> None:
        self._nodes: dict[OutputKey, _Node] = {}
        self._priors = {kind: SurvivalCurve(*counts) for kind, counts in _PRIORS.items()}

    def quantile(self, q: float, key: OutputKey, generated: int = 0, cap: int | None = None) -> int:
        """The total length, in tokens, that a share `q` stays under given that `generated` exist; at most `cap`.

        `generated` matters: tails are heavy, so a long answer is expected to become longer still.
        """
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
        level: OutputKey | None = key
        while level is not None:
            node = self._node(level)
            node.sketch.learn(tokens, finished, now)
            node.changes += 1
            level = level.wider

    def _node(self, key: OutputKey) -> _Node:
        node = self._nodes.get(key)
        if node is None:
            if len(self._nodes) >= _MAX_NODES:
                del self._nodes[next(iter(self._nodes))]
            node = self._nodes[key] = _Node(SurvivalSketch())
        return node

    def _curve(self, key: OutputKey) -> SurvivalCurve:
        node = self._nodes.get(key)
        wider = key.wider
        if node is None:
            return self._priors[key.kind] if wider is None else self._curve(wider)
        parent = self._nodes.get(wider) if wider is not None else None
        stamp = (node.changes, parent.changes if parent is not None else 0)
        if node.curve is None or node.seen != stamp:
            node.curve, node.seen = SurvivalCurve(*self._blended(key)), stamp
        return node.curve

    def _blended(self, key: OutputKey) -> tuple[list[float], list[float]]:
        """The key's counts plus its parent's, scaled to 20 streams."""
        wider = key.wider
        ended, reached = _PRIORS[key.kind] if wider is None else self._blended(wider)
        node = self._nodes.get(key)
        return (ended, reached) if node is None else node.sketch.leaning_on(ended, reached, _PSEUDO)

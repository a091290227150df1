"""How many tokens a prompt has, from counts of byte classes: no tokenizer, corrected by every answer's usage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.core.estimators.ratio_spread import RatioSpread
from gateway.core.estimators.text_counts import TextCounts, count_text

__all__ = ["PromptEstimate", "PromptTokenEstimator", "TextCounts", "Tier", "count_text"]

_PRIOR = (0.24, 0.90, 0.45, 0.36, 5.0, 12.0, 6.0)
"""Tokens per letter or space, digit, other ASCII byte, non-ASCII byte, message, tool, request: English prose has about
4.1 bytes a token, code heavy in punctuation 2.2; Qwen tokenizers split digits singly; a CJK character is 3 bytes and
about 1 token; the last three are what chat templates wrap around."""
_LEAST = 0.7
"""Of the prior: English words of one token each, separated by spaces, have about 0.83 of it."""
_STEP = (0.24**2, 0.90**2, 0.45**2, 0.36**2, 5.0**2, 12.0**2, 6.0**2)
"""Per-weight gain, prior squared: each weight moves in proportion to its own size."""
_GAIN = 0.05
_SHRINK = 8.0
_SLOWEST = 0.05
_FULL_SAMPLE = 200.0
"""Tokens from which a prompt counts in full; shorter ones are mostly template."""
_MAX_LOG_RATIO = math.log(3.0)
_MAX_CLIENTS = 4096


class Tier(StrEnum):
    """Which estimator answered."""

    BYTES = "A"
    """Byte-class regression over the whole prompt."""
    ANCHORED = "B"
    """An exact count of the start of the prompt, and the regression over what follows."""
    EXACT = "C"
    """A tokenizer, or the engine itself."""


@dataclass(frozen=True, slots=True)
class PromptEstimate:
    """Tokens of a prompt: the best guess, and a figure that 95 % of prompts stay under."""

    tokens: int
    high: int
    tier: str = Tier.BYTES


@dataclass(slots=True)
class _Client:
    """How one client's prompts on one model differ from what the model's weights say."""

    spread: RatioSpread = field(default_factory=RatioSpread)
    samples: float = 0.0
    log_ratio: float = 0.0

    @property
    def shrunk(self) -> float:
        """The log ratio as far as the samples vouch for it."""
        return self.log_ratio * self.samples / (self.samples + _SHRINK)


@dataclass(slots=True)
class _Model:
    """One model's weights, and the sum of its clients' shrunk log ratios: a new client starts at their mean."""

    weights: list[float] = field(default_factory=lambda: list(_PRIOR))
    clients: int = 0
    ratios: float = 0.0

    def factor(self, client: _Client | None) -> float:
        """The factor on the weights' estimate: the client's own, shrunk towards all clients' while samples are few."""
        common = self.ratios / (self.clients + 1)  # one imagined client agrees with the weights
        if client is None:
            return math.exp(common)
        return math.exp(client.shrunk + common * _SHRINK / (client.samples + _SHRINK))


class PromptTokenEstimator:
    """Tokens of a prompt per model and client.

    Per model a linear regression over TextCounts, moved by normalised least mean squares; per (model, client) a shrunk
    log ratio on top, and the spread of what is left. The regression learns proportions, the ratios learn scale, so that
    one busy client with odd prompts doesn't bend the estimates of the others. Prompts with images or other non-text
    parts must not be learned.
    """

    def __init__(self) -> None:
        self._models: dict[str, _Model] = {}
        self._clients: dict[tuple[str, str], _Client] = {}

    def estimate(self, model: str, client: str, counts: TextCounts) -> PromptEstimate:
        """Estimate a whole prompt."""
        known = self._models.get(model)
        if known is None:
            raw = _tokens(_PRIOR, counts)
            return PromptEstimate(round(raw), math.ceil(raw * _UNSEEN), Tier.BYTES)
        habits = self._clients.get((model, client))
        tokens = _tokens(known.weights, counts) * known.factor(habits)
        safety = _UNSEEN if habits is None else habits.spread.high
        return PromptEstimate(max(1, round(tokens)), math.ceil(max(1.0, tokens * safety)), Tier.BYTES)

    def least(self, counts: TextCounts) -> int:
        """Tokens that such a prompt has at least, going by what is known of tokenizers and not by what was learned.

        A client's habits say nothing of a prompt of another kind, and a refusal can't be taken back.
        """
        return int(_LEAST * _tokens(_PRIOR, counts))

    def estimate_after(self, model: str, client: str, exact: int, counts: TextCounts) -> PromptEstimate:
        """Estimate a prompt whose first `exact` tokens were counted by an engine before; `counts` is the text since.

        Only the addition is uncertain: 10 % of a 2 k addition to 80 k tokens is 0.25 %.
        """
        added = self.estimate(model, client, counts)
        return PromptEstimate(exact + added.tokens, exact + added.high, Tier.ANCHORED)

    def learn(self, model: str, client: str, counts: TextCounts, exact: int) -> None:
        """Learn from the prompt tokens an engine reported for a text-only prompt which it didn't truncate."""
        if exact <= 0:
            return
        known = self._models.setdefault(model, _Model())
        raw = _tokens(known.weights, counts)
        habits = self._client(model, client)
        weight = min(1.0, raw / _FULL_SAMPLE)
        habits.spread.learn(exact / (raw * known.factor(habits)), weight)
        before = habits.shrunk
        habits.samples += weight
        ratio = min(_MAX_LOG_RATIO, max(-_MAX_LOG_RATIO, math.log(exact / raw)))
        habits.log_ratio += max(weight / habits.samples, weight * _SLOWEST) * (ratio - habits.log_ratio)
        known.ratios += habits.shrunk - before
        _move(known.weights, counts, exact / math.exp(habits.log_ratio), raw)

    def _client(self, model: str, client: str) -> _Client:
        key = (model, client)
        habits = self._clients.get(key)
        if habits is None:
            if len(self._clients) >= _MAX_CLIENTS:
                oldest = next(iter(self._clients))
                gone = self._clients.pop(oldest)
                self._models[oldest[0]].clients -= 1
                self._models[oldest[0]].ratios -= gone.shrunk
            habits = self._clients[key] = _Client()
            self._models[model].clients += 1
        return habits


def _tokens(weights: Sequence[float], counts: TextCounts) -> float:
    estimate = (
        weights[0] * counts.letters
        + weights[1] * counts.digits
        + weights[2] * counts.other
        + weights[3] * counts.non_ascii
        + weights[4] * counts.messages
        + weights[5] * counts.tools
        + weights[6]
    )
    return max(1.0, estimate)


def _move(weights: list[float], counts: TextCounts, exact: float, raw: float) -> None:
    """One step of normalised least mean squares; the weights stay within 0.3 to 3 times the prior."""
    x = (counts.letters, counts.digits, counts.other, counts.non_ascii, counts.messages, counts.tools, 1)
    error = min(0.5, max(-0.5, (exact - raw) / max(exact, 32)))
    norm = sum(step * value * value for step, value in zip(_STEP, x, strict=True))
    scale = _GAIN * error * exact / (1e-9 + norm)
    for i, prior in enumerate(_PRIOR):
        moved = weights[i] + scale * _STEP[i] * x[i]
        weights[i] = min(3.0 * prior, max(0.3 * prior, moved))


_UNSEEN = RatioSpread().high
"""Safety factor for a client never seen before."""

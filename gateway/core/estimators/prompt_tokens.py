"""How many tokens a prompt has, from counts of its bytes: no tokenizer, corrected by every answer's usage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.core.estimators.proportions import Proportions
from gateway.core.estimators.ratio_spread import RatioSpread
from gateway.core.estimators.text_counts import NOTHING, TextCounts, count_text
from gateway.core.estimators.tokenizer_priors import contributions, least_tokens, prior_of
from gateway.core.prefix.anchors import Anchor, AnchorStore
from gateway.core.prefix.chain import Chain

__all__ = ["MOST_CLIENTS", "Habits", "PromptEstimate", "PromptTokenEstimator", "TextCounts", "Tier", "count_text"]

_NOISE = 0.03
"""Standard deviation of what proportions can't explain, of a prompt."""
_NOISE_TOKENS = 4.0
_SHARED_NOISE = 0.10
"""The same for what all clients of a model have in common; grows with what one client has said already."""
_TALKATIVE = 8.0
"""Observations after which a client's next ones count half for the others."""
MOST_CLIENTS = 4096
_SAME_ANSWER = 0.25
"""An answer comes back as it was given if our estimate of the message is no further from the engine's count."""
_ANSWER_DOUBT = 0.02
"""Share of an answer by which it may differ from what comes back of it."""
_TURN_DOUBT = 4.0
"""Tokens a message."""
_OFFSET_RATE = 0.1
_MAX_OFFSET = 24.0


class Tier(StrEnum):
    """Which estimator answered."""

    BYTES = "A"
    """Byte counts of the whole prompt."""
    ANCHORED = "B"
    """An exact count of the start of the prompt, and byte counts of what follows."""
    EXACT = "C"
    """A tokenizer, or the engine itself."""


@dataclass(frozen=True, slots=True)
class PromptEstimate:
    """Tokens of a prompt: the best guess, and a figure that 95 % of prompts stay under."""

    tokens: int
    high: int
    tier: str = Tier.BYTES


@dataclass(slots=True)
class Habits:
    """What a client's prompts on one model taught, or those of all its clients."""

    proportions: Proportions = field(default_factory=Proportions)
    spread: RatioSpread = field(default_factory=RatioSpread)
    samples: int = 0
    offset: float = 0.0
    """Tokens a message after an anchor that were missing from the estimate."""


class PromptTokenEstimator:
    """Tokens of a prompt per model and client.

    A prior by the model's tokenizer family, in a few parts (letters, digits, punctuation, scripts, template ...); how
    much of each part is true is learned per client, from where all clients of the model together have come so far. The
    spread of what is left tells the safe side. Prompts with images or other non-text parts must not be learned, nor
    what an engine cut.
    """

    def __init__(self) -> None:
        self.models: dict[str, Habits] = {}
        self.clients: dict[tuple[str, str], Habits] = {}
        self._anchors = AnchorStore()

    def estimate(self, model: str, client: str, counts: TextCounts, chain: Chain | None = None) -> PromptEstimate:
        """Estimate a prompt: from where an engine has counted its start before, by its `chain`, else all of it."""
        known = self.clients.get((model, client))
        safety = _UNSEEN if known is None else known.spread.high
        found = self._anchored(model, counts, chain)
        if found is None:
            tokens = max(1.0, self._tokens(model, client, counts))
            return PromptEstimate(round(tokens), math.ceil(tokens * safety), Tier.BYTES)
        exact, added = self._split(model, client, *found)
        tokens = max(1.0, exact + added)
        doubt = added * (safety - 1.0) + (exact - found[0].tokens) * _ANSWER_DOUBT + _TURN_DOUBT * len(found[1])
        return PromptEstimate(round(tokens), math.ceil(tokens + max(0.0, doubt)), Tier.ANCHORED)

    def least(self, counts: TextCounts) -> int:
        """Tokens that such a prompt has at least, going by what is known of tokenizers and not by what was learned.

        A client's habits say nothing of a prompt of another kind, and a refusal can't be taken back.
        """
        return least_tokens(counts)

    def learn(
        self,
        model: str,
        client: str,
        counts: TextCounts,
        exact: int,
        chain: Chain | None = None,
        answer: int = 0,
    ) -> None:
        """Learn from the prompt tokens an engine reported for a text-only prompt; `answer`: tokens it answered.

        Fewer than any vocabulary makes of such text are those of a prompt that was cut, and not learned.
        """
        if exact <= 0 or exact < least_tokens(counts):
            return
        parts = contributions(prior_of(model), counts)
        shared = self.models.get(model)
        if shared is None:
            shared = self.models[model] = Habits()
        known = self._client(model, client, shared)
        if chain is not None:
            self._learn_anchored(model, client, known, counts, chain, exact)
            self._anchors.learn(model, chain, exact, answer)
        before = max(1.0, known.proportions.tokens(parts))
        known.spread.learn(exact / before, 1.0 if known.samples else 0.5)
        known.samples += 1
        known.proportions.learn(parts, exact, _NOISE * exact + _NOISE_TOKENS)
        shared.samples += 1
        shared.proportions.learn(parts, exact, _SHARED_NOISE * exact * (1.0 + known.samples / _TALKATIVE))

    def _anchored(
        self, model: str, counts: TextCounts, chain: Chain | None
    ) -> tuple[Anchor, tuple[TextCounts, ...]] | None:
        """The longest start of a prompt that an engine has counted, and the messages after it."""
        found = self._anchors.find(model, chain) if chain is not None else None
        if found is None or found[1] > len(counts.turns):
            return None
        anchor, after = found
        return anchor, counts.turns[len(counts.turns) - after :]

    def _learn_anchored(
        self, model: str, client: str, known: Habits, counts: TextCounts, chain: Chain, exact: int
    ) -> None:
        """Learn what the template adds to a message, from a prompt that went on from a counted one."""
        found = self._anchored(model, counts, chain)
        if found is None or not found[1]:
            return
        counted, added = self._split(model, client, *found)
        missing = (exact - counted - added) / len(found[1])
        if abs(missing) <= _MAX_OFFSET:
            known.offset += _OFFSET_RATE * missing

    def _split(self, model: str, client: str, anchor: Anchor, turns: Sequence[TextCounts]) -> tuple[float, float]:
        """(tokens that an engine counted, tokens that we estimate) of a prompt that goes on from an anchor."""
        exact, added = float(anchor.tokens), 0.0
        request = self._tokens(model, client, NOTHING)
        for i, turn in enumerate(turns):
            tokens = max(0.0, self._tokens(model, client, turn) - request)
            given = anchor.answer
            if i == 0 and turn.answer and given and abs(tokens - given) <= _SAME_ANSWER * given + _MAX_OFFSET:
                exact += given
            else:
                added += tokens
        known = self.clients.get((model, client))
        if known is not None:
            added += known.offset * len(turns)
        return exact, added

    def _tokens(self, model: str, client: str, counts: TextCounts) -> float:
        parts = contributions(prior_of(model), counts)
        known = self.clients.get((model, client)) or self.models.get(model)
        return known.proportions.tokens(parts) if known is not None else sum(parts)

    def _client(self, model: str, client: str, shared: Habits) -> Habits:
        key = (model, client)
        known = self.clients.get(key)
        if known is None:
            if len(self.clients) >= MOST_CLIENTS:
                del self.clients[next(iter(self.clients))]
            known = self.clients[key] = Habits(Proportions(shared.proportions.mean))
        return known


_UNSEEN = RatioSpread().high
"""Safety factor for a client never seen before."""

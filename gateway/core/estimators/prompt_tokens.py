"""How many tokens a prompt has, from counts of its bytes: no tokenizer, corrected by every answer's usage."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.core.estimators.proportions import Proportions
from gateway.core.estimators.ratio_spread import RatioSpread
from gateway.core.estimators.text_counts import TextCounts, count_text
from gateway.core.estimators.tokenizer_priors import GROUPS, contributions, least_tokens, most_parts, prior_of
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
_SAME_ANSWER = 1.35
"""An answer comes back as it was given if our estimate of the message is within this factor of the engine's count."""
_MOVED_DOUBT = 0.05
"""Share of an answer or of reasoning by which it may differ from what comes back of it."""
_SIGMAS = 1.645
"""Standard deviations that 95 % stay under."""
_TELLING = 32.0
"""Tokens from which an addition tells something of its text."""
_FULL_SAMPLE = 200.0
_ADDED_NOISE = 0.06
_TURN_DOUBT = 6.0
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


@dataclass(frozen=True, slots=True)
class _Split:
    """Tokens of a prompt that goes on from a counted one: all, and of them what was `added` by our estimate alone.

    `moved`: what an engine counted, but not here: the answer that came back, reasoning that goes or comes. `parts` are
    what our proportions make the rest of, beyond what is `known`.
    """

    tokens: float
    added: float
    moved: float
    known: float
    parts: Sequence[float]


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
            parts = contributions(prior_of(model), counts)
            proportions = self._proportions(model, client)
            tokens = max(1.0, least_tokens(counts), proportions.tokens(parts))
            # A client who has said nothing of this kind so far may surprise as much as its proportions are unsure.
            unsure = _SIGMAS * proportions.sigma(parts) if known is not None else 0.0
            return PromptEstimate(
                round(tokens), math.ceil(tokens + math.hypot(tokens * (safety - 1.0), unsure)), Tier.BYTES
            )
        split = self._split(model, client, counts, *found)
        tokens = max(1.0, split.tokens)
        doubt = split.added * (safety - 1.0) + split.moved * _MOVED_DOUBT + _TURN_DOUBT * len(found[1])
        return PromptEstimate(round(tokens), math.ceil(tokens + max(0.0, doubt)), Tier.ANCHORED)

    def least(self, counts: TextCounts) -> int:
        """Tokens that such a prompt has at least, going by what is known of tokenizers and not by what was learned.

        A client's habits say nothing of a prompt of another kind, and a refusal can't be taken back.
        """
        return least_tokens(counts)

    def most(self, model: str, client: str, counts: TextCounts) -> int:
        """Tokens that such a prompt may have where no part of it was counted.

        What a client showed goes by what that taught; kinds of text that it never showed by the poorest vocabulary.
        """
        parts = contributions(prior_of(model), counts)
        known = self.clients.get((model, client))
        proportions = self._proportions(model, client)
        doubts = known.proportions.untaught() if known is not None else _ALL_DOUBT
        likely = [factor * part for factor, part in zip(proportions.mean, parts, strict=True)]
        more = [
            doubt * max(0.0, most - tokens)
            for doubt, most, tokens in zip(doubts, most_parts(counts), likely, strict=False)
        ]
        return math.ceil(sum(likely, 0.0) + sum(more, 0.0))

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
        found = self._anchored(model, counts, chain)
        if chain is not None:
            self._anchors.learn(model, chain, Anchor(exact, answer, *parts[-2:]))
        if found is not None:
            self._learn_added(known, self._split(model, client, counts, *found), len(found[1]), exact)
            return
        known.spread.learn(exact / max(1.0, known.proportions.tokens(parts)), 1.0 if known.samples else 0.5)
        known.samples += 1
        known.proportions.learn(parts, exact, _NOISE * exact + _NOISE_TOKENS)
        shared.samples += 1
        shared.proportions.learn(parts, exact, _SHARED_NOISE * exact * (1.0 + known.samples / _TALKATIVE))

    def _learn_added(self, known: Habits, split: _Split, turns: int, exact: int) -> None:
        """Learn from what a conversation had more than at its last turn; the rest of it was learned before."""
        if not turns:
            return
        missing = (exact - split.tokens) / turns
        if abs(missing) <= _MAX_OFFSET:
            known.offset += _OFFSET_RATE * missing
        size = sum(map(abs, split.parts))
        if size < _TELLING:
            return
        known.proportions.learn(split.parts, exact - split.known, _ADDED_NOISE * size + _NOISE_TOKENS * turns)
        if split.added >= _TELLING:
            ratio = 1.0 + (exact - split.tokens) / split.added
            known.spread.learn(max(0.1, ratio), min(1.0, split.added / _FULL_SAMPLE))

    def _anchored(
        self, model: str, counts: TextCounts, chain: Chain | None
    ) -> tuple[Anchor, tuple[TextCounts, ...]] | None:
        """The longest start of a prompt that an engine has counted, and the messages after it."""
        found = self._anchors.find(model, chain) if chain is not None else None
        if found is None or found[1] > len(counts.turns):
            return None
        anchor, after = found
        return anchor, counts.turns[len(counts.turns) - after :]

    def _split(
        self, model: str, client: str, counts: TextCounts, anchor: Anchor, turns: Sequence[TextCounts]
    ) -> _Split:
        """A prompt that goes on from an anchor, by what an engine counted and what we estimate."""
        prior, proportions = prior_of(model), self._proportions(model, client)
        now = contributions(prior, counts)
        parts = [0.0] * len(now)
        parts[-2:] = now[-2] - anchor.thought, now[-1] - anchor.past_thought
        exact = float(anchor.tokens)
        for i, turn in enumerate(turns):
            mine = contributions(prior, turn)
            mine[_STRUCTURE] -= prior.structure.request
            thought, mine[-2] = mine[-2], 0.0
            tokens = proportions.tokens(mine)
            share = anchor.answer / max(1.0, tokens + thought) if i == 0 and turn.answer else 0.0
            if 1.0 / _SAME_ANSWER < share < _SAME_ANSWER:
                exact += tokens * share
                parts[-2 if counts.thought else -1] += thought * (share - 1.0)
            else:
                parts = list(map(operator.add, parts, mine))
        known = self.clients.get((model, client))
        offset = known.offset * len(turns) if known is not None else 0.0
        added = proportions.tokens([*parts[:-2], 0.0, 0.0])
        counted = exact - anchor.tokens + abs(parts[-2]) + abs(parts[-1])
        return _Split(exact + proportions.tokens(parts) + offset, added, counted, exact + offset, parts)

    def _proportions(self, model: str, client: str) -> Proportions:
        known = self.clients.get((model, client)) or self.models.get(model)
        return known.proportions if known is not None else _UNTAUGHT

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
_UNTAUGHT = Proportions()
_ALL_DOUBT = _UNTAUGHT.untaught()
_STRUCTURE = list(GROUPS).index("structure")

"""What the gateway has learned from answers, behind three questions: how long, how warm, how fast.

Every answer teaches here once, when its lease is settled; every decision reads here. Mutable, pure, one writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gateway.core.backend import Offer
from gateway.core.estimators.learned_factor import LearnedFactor
from gateway.core.estimators.output_length import OutputKey, OutputKind, OutputLengthEstimator
from gateway.core.estimators.prompt_tokens import PromptTokenEstimator, TextCounts, Tier
from gateway.core.prefix.chain import Chain
from gateway.core.prefix.index import PrefixIndex
from gateway.core.prefix.reuse import Match
from gateway.core.prefix.trust import PrefixTrust
from gateway.core.request import Estimate, Hit, Request
from gateway.core.scheduling import DrainRate
from gateway.core.snapshot import BackendView

__all__ = ["Experience", "Measurement"]

RESERVED_QUANTILE = 0.9
"""Share of answers that stay within what is reserved for them (algorithms 1.4, middle free share)."""
PREFILL_SAMPLE = 256
"""Uncached tokens below which the time to the first token says more about overheads than about prefill."""


PINNED_SHARE = 0.9
"""Part of a hit that running requests must hold before its blocks are not charged again."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one attempt measured, in tokens and seconds; None where the engine did not tell or it did not happen.

    `finished`: the model ended the answer itself. `alone`: no other prompt was in prefill there, so the first token's
    time is this prompt's own.
    """

    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    finished: bool = False
    prefill_seconds: float | None = None
    predicted_prefill: float | None = None
    tpot: float | None = None
    predicted_tpot: float | None = None
    text_only: bool = True


class Experience:
    """Estimators, prefix beliefs and speed factors of one gateway."""

    def __init__(self, now: float, entries: int = 262_144) -> None:
        self.tokens = PromptTokenEstimator()
        self.outputs = OutputLengthEstimator()
        self.prefixes = PrefixIndex(entries)
        self.trust = PrefixTrust()
        self._prefill: dict[str, LearnedFactor] = {}
        self._decode: dict[str, LearnedFactor] = {}
        self._told: dict[str, Match] = {}
        self.drained_tokens = DrainRate(now)
        """Prompt and output tokens completed a second, over all backends."""

    # --- how long

    def estimate(
        self, model: str, client: str, counts: TextCounts, needs: frozenset[str], *, exact: int | None = None
    ) -> Estimate:
        """Tokens of a prompt and its answer on a model; `exact` where the prompt came as token ids."""
        key = _output_key(model, client, needs)
        mean = max(1, round(self.outputs.mean(key)))
        high = max(mean, self.outputs.quantile(RESERVED_QUANTILE, key))
        if exact is not None:
            return Estimate(exact, exact, mean, high, Tier.EXACT)
        prompt = self.tokens.estimate(model, client, counts)
        return Estimate(prompt.tokens, prompt.high, mean, high, prompt.tier)

    # --- how warm

    @property
    def prefix_version(self) -> tuple[int, int]:
        """Changes whenever `hits` could answer differently."""
        return self.prefixes.version, self.trust.version

    def hits(self, chain: Chain, models: Sequence[str], views: Iterable[BackendView]) -> Mapping[str, Hit]:
        """What each backend is believed to hold of this prompt, for the first of `models` that it serves.

        By backend name.
        """
        holders = {}
        for view in views:
            served = next((offer.model for model in models if (offer := view.offer(model)) is not None), None)
            if served is not None:
                holders[_holder(view.name, served)] = view.name
        hits = {}
        for holder, match in self.prefixes.match(chain, holders).items():
            if match.bytes:
                trust = self.trust.share(holder, match)
                hits[holders[holder]] = Hit(match.share, trust, pinned=match.pinned >= PINNED_SHARE * match.bytes)
        return hits

    def sent(self, lease: str, view: BackendView, offer: Offer, chain: Chain, prompt: int) -> None:
        """A prompt of so many tokens was sent: from its first token on its prefix is there."""
        holder = _holder(view.name, offer.model)
        if view.pool > 0:
            # Slots keep whole sequences, one each; paged caches share blocks and evict the least recently used.
            self.prefixes.register(holder, view.pool, view.slots if view.backend.keeps_sequences else None)
        self._told[lease] = self.prefixes.match(chain, (holder,))[holder]
        self.prefixes.begin(holder, chain, prompt)

    def resident(self, backend: str, model: str, chain: Chain) -> None:
        """The first token came: the prompt has been computed."""
        self.prefixes.confirm(_holder(backend, model), chain)

    def forget_cache(self, backend: str, models: Iterable[str]) -> None:
        """The engine restarted: its cache is empty."""
        for model in models:
            self.prefixes.forget(_holder(backend, model))

    def remove(self, backend: str, models: Iterable[str]) -> None:
        """The backend is gone for good."""
        for model in models:
            self.prefixes.remove(_holder(backend, model))
            self.trust.forget(_holder(backend, model))
        self._prefill.pop(backend, None)
        self._decode.pop(backend, None)

    # --- how fast

    def factors(self, backend: str, now: float) -> tuple[float, float]:
        """(prefill, decode): observed over predicted seconds of that backend."""
        prefill, decode = self._prefill.get(backend), self._decode.get(backend)
        return (prefill.factor(now) if prefill else 1.0), (decode.factor(now) if decode else 1.0)

    # --- learning

    def learn(
        self,
        lease: str,
        backend: str,
        model: str,
        request: Request,
        chain: Chain,
        counts: TextCounts | None,
        block: int,
        measured: Measurement,
        now: float,
    ) -> None:
        """Learn from one attempt that is over; one that measured nothing only frees its prefix."""
        holder = _holder(backend, model)
        told = self._told.pop(lease, None)
        self.prefixes.end(holder, chain, measured.output_tokens or 0)
        if measured.prompt_tokens:
            if measured.text_only and counts is not None:
                self.tokens.learn(model, request.client, counts, measured.prompt_tokens)
            if told is not None and measured.cached_tokens is not None:
                self.trust.learn(holder, told, measured.prompt_tokens, measured.cached_tokens, block)
        if measured.output_tokens:
            per_choice = max(1, measured.output_tokens // request.n)
            self.outputs.learn(_output_key(model, request.client, request.needs), per_choice, measured.finished, now)
            self.drained_tokens.completed((measured.prompt_tokens or 0) + measured.output_tokens, now)
        self._learn_speed(backend, measured, now)

    def _learn_speed(self, backend: str, measured: Measurement, now: float) -> None:
        if measured.prefill_seconds and measured.predicted_prefill and _enough(measured):
            factor = self._prefill.setdefault(backend, LearnedFactor())
            factor.learn(measured.prefill_seconds, measured.predicted_prefill, now)
        if measured.tpot and measured.predicted_tpot:
            self._decode.setdefault(backend, LearnedFactor()).learn(measured.tpot, measured.predicted_tpot, now)


def _enough(measured: Measurement) -> bool:
    return (measured.prompt_tokens or 0) - (measured.cached_tokens or 0) >= PREFILL_SAMPLE


def _output_key(model: str, client: str, needs: frozenset[str]) -> OutputKey:
    return OutputKey(model, client, OutputKind.TOOLS if "tools" in needs else OutputKind.CHAT)


def _holder(backend: str, model: str) -> str:
    """Caches of two models on one backend share nothing."""
    return f"{backend}\n{model}"

"""What the gateway has learned from answers, behind three questions: how long, how warm, how fast.

Every answer teaches here once, when its lease is settled; every decision reads here. Mutable, pure, one writer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from gateway.core.account import Totals
from gateway.core.decision import Decision
from gateway.core.degrading.phase import Phase
from gateway.core.draining import DrainRate, expected_rate
from gateway.core.estimators.answer_shape import PLAIN, AnswerShape
from gateway.core.estimators.event_size import EventSize
from gateway.core.estimators.media_tokens import MediaTokens
from gateway.core.estimators.output_length import OutputKey, OutputLengthEstimator
from gateway.core.estimators.prompt_tokens import PromptTokenEstimator, TextCounts, Tier
from gateway.core.fair_share import cost_of
from gateway.core.leading import NOTHING_AWAITED, awaited, leads, when_read
from gateway.core.lease import Ended, Lease
from gateway.core.output_quantiles import key_of, output_quantiles
from gateway.core.pace import Pace
from gateway.core.prefix.block_events import Event
from gateway.core.prefix.chain import Chain
from gateway.core.prefix.granularity import Granularity
from gateway.core.prefix.index import PrefixIndex
from gateway.core.prefix.inferring import inferred_cached
from gateway.core.prefix.leaders import Leaders
from gateway.core.prefix.reuse import Match, bin_of
from gateway.core.prefix.sharing import Sharing
from gateway.core.prefix.trust import PrefixTrust
from gateway.core.request import Estimate, Hit, Request
from gateway.core.sessions import Sessions
from gateway.core.slot_files import SlotFiles, Swap
from gateway.core.snapshot import BackendView, Snapshot
from gateway.core.truncation import was_cut

__all__ = ["Experience", "backend_of"]

_NAMES = 1024
"""Names whose rates are kept."""


class Experience:
    """Estimators, prefix beliefs and speed factors of one gateway."""

    def __init__(self, entries: int = 262_144) -> None:
        self.tokens = PromptTokenEstimator()
        self.media = MediaTokens()
        self.outputs = OutputLengthEstimator()
        self.sessions = Sessions()
        self.prefixes = PrefixIndex(entries, self._worth)
        self.trust = PrefixTrust()
        self.leaders = Leaders()
        self.slot_files = SlotFiles()
        self._grains: dict[str, Granularity] = {}
        self._now = 0.0
        self.lessons = 0
        """Answers learned from."""
        self.paces: dict[str, Pace] = {}
        self._told: dict[str, Match] = {}
        self._sharing: dict[str, Sharing] = {}
        self.events: dict[str, EventSize] = {}
        self._drained: dict[str, DrainRate] = {}

    # --- how long

    def estimate(
        self,
        model: str,
        client: str,
        counts: TextCounts,
        shape: AnswerShape = PLAIN,
        *,
        route: str = "",
        klass: str = "default",
        chain: Chain | None = None,
        exact: int | None = None,
        limit: int | None = None,
        window: int | None = None,
    ) -> Estimate:
        """Tokens of a prompt and its answer on a model; `exact` where the prompt came as token ids.

        By its `chain` a prompt is known whose start an engine has counted before.
        `route` is the name that was asked for. No answer is longer than `limit`, nor together with the prompt longer
        than `window`, the widest there is.
        """
        if exact is not None:
            tokens, most, tier, floor = exact, exact, str(Tier.EXACT), None
        else:
            prompt = self.tokens.estimate(model, client, counts, chain)
            tokens, most, tier = prompt.tokens, prompt.high, str(prompt.tier)
            floor = self.tokens.least(counts)
        cap = limit
        if window is not None:
            room = max(1, window - tokens)
            cap = room if cap is None or room < cap else cap
        mean, roomy, usual, tight = output_quantiles(self.outputs, OutputKey(model, client, route, shape), klass, cap)
        return Estimate(tokens, most, mean, usual, tier, floor, roomy, tight)

    def drained(self, model: str, now: float) -> DrainRate:
        """Prompt and output tokens completed a second for a name that clients use."""
        found = self._drained.get(model)
        if found is None:
            if len(self._drained) >= _NAMES:
                del self._drained[next(iter(self._drained))]
            found = self._drained[model] = DrainRate(now)
        return found

    def seconds_to_drain(
        self, work: int, request: Request, snapshot: Snapshot, typical: tuple[int, int] | None = None
    ) -> float:
        """Seconds in which so many tokens of work for the model of `request` are served; infinite if nobody does.

        `typical`: tokens of the prompt and the output of what that work is made of; None: as those of the request.
        """
        estimate, each = next(iter(request.estimates.values()), None), cost_of(request)
        if estimate is not None and typical is not None:
            prompt, output = typical
            estimate, each = Estimate(prompt, prompt, output, output), max(1, prompt + output)
        expected = expected_rate(snapshot.views, request.estimates, estimate) if estimate is not None else 0.0
        rate = self.drained(request.model, snapshot.now).rate(snapshot.now, expected, each)
        return work / rate if rate > 0.0 else math.inf

    # --- how warm

    @property
    def prefix_version(self) -> tuple[int, int]:
        """Changes whenever `hits` could answer differently."""
        return self.prefixes.version + self.leaders.version, self.trust.version

    def hits(
        self, chain: Chain, models: Sequence[str], views: Iterable[BackendView], now: float | None = None
    ) -> Mapping[str, Hit]:
        """What each backend is believed to hold of this prompt, for the first of `models` that it serves.

        By backend name. `now` (seconds, monotonic) says how long others have been idle that it would push out; without
        it nothing is said of those.
        """
        holders = {}
        self._now = self._now if now is None else now
        for view in views:
            served = next((offer.model for model in models if (offer := view.offer(model)) is not None), None)
            if served is not None:
                holders[_holder(view.name, served)] = view.name
        hits, leading = {}, bool(self.leaders)
        for holder, match in self.prefixes.match(chain, holders).items():
            more = awaited(self.leaders, self.trust, holder, chain, match) if leading else NOTHING_AWAITED
            evicts = self._evicts(holder, match, now) if match.displaced is not None and now is not None else 0.0
            if match.bytes or more[0] or evicts:
                trust = self.trust.share(holder, match)
                sharing = self._sharing.get(holder)
                held = sharing.held(chain, match.pinned) if sharing is not None else 0
                # What is pinned was used last of all; an engine that did not share that shares nothing.
                pinned = match.pinned / match.total * self.trust.probability(holder, 0)
                hits[holders[holder]] = Hit(match.share, trust, pinned, held, *more, evicts, self._step(holder))
        return hits

    def _step(self, holder: str) -> int:
        """Tokens in whose multiples its hits come."""
        grain = self._grains.get(holder)
        return grain.tokens if grain is not None else 1

    def _cached(self, lease: Lease, ended: Ended, told: Match, holder: str, now: float) -> int | None:
        """Tokens of its prompt that were cached, as its engine said, else as the time to its first token says."""
        decision, prompt = lease.decision, ended.prompt_tokens
        if ended.cached_tokens is not None or ended.ttft is None or not prompt or not lease.request.stream:
            return ended.cached_tokens
        step = max(lease.block, self._step(holder))
        expected = min(int(prompt * told.share), prompt - 1) // step * step
        backlog = max(0.0, (decision.predicted_ttft or 0.0) - (decision.predicted_prefill or 0.0))
        factor = self.factors(lease.backend, now)[0]
        return inferred_cached(lease.offer.speed, factor, prompt, expected, backlog, ended.ttft)

    def _worth(self, chain: Chain) -> float:
        return self.sessions.comes_back(chain, self._now)

    def _evicts(self, holder: str, match: Match, now: float) -> float:
        """Tokens that this prompt would push out there and that somebody would have come back for."""
        if match.displaced is None:
            return 0.0
        kept = self.trust.probability(holder, bin_of(1.0))  # what lost its place may be held in the engine's memory
        there = self.trust.probability(holder, 0)
        return match.displaced_tokens * self.sessions.comes_back(match.displaced, now) * there * (1.0 - kept)

    def expects(self, request: Request, chain: Chain, decision: Decision, view: BackendView) -> None:
        """A request was admitted and is about to be sent: those that are decided upon after it may wait for its prefix.

        Until `leaders.settled`.
        """
        if decision.model is not None and leads(decision, view):
            holder, now = _holder(view.name, decision.model), decision.now
            self.leaders.expect(holder, request.id, chain, now, when_read(decision, now))

    def read_unseen(self, now: float) -> None:
        """Take prompts for read whose first tokens can't be seen, since their answers come whole, when it is time."""
        for holder, chain in self.leaders.read_unseen(now):
            self.prefixes.confirm(holder, chain)

    def sent(self, lease: Lease, view: BackendView) -> None:
        """A prompt was sent: from its first token on its prefix is there."""
        holder = _holder(lease.backend, lease.offer.model)
        if view.pool > 0:
            # Slots keep whole sequences, one each; paged caches share blocks and evict the least recently used.
            sequences = (view.kept or view.slots) if view.backend.keeps_sequences else None
            self.prefixes.register(holder, view.pool, sequences, chosen=sequences is not None and _chooses(view))
        footprint = lease.decision.footprint
        self._now = lease.granted_at
        if lease.request.thread:
            lease.divergence = self.sessions.sent(lease.request, lease.chain, lease.backend, lease.granted_at)
        self._told[lease.id] = self.prefixes.match(lease.chain, (holder,))[holder]
        if footprint is not None:
            self.prefixes.begin(holder, lease.chain, footprint.prompt)
            if _chooses(view) and lease.request.n == 1:
                lease.slot = self.prefixes.slot_of(holder, lease.chain)
                if view.backend.saves_slots and lease.slot is not None:
                    lease.swap = self._swap(lease, holder, lease.slot, view.prefill_factor)
            self._sharing.setdefault(holder, Sharing()).enter(lease.id, lease.chain, footprint.prompt, footprint.shared)
        if (mirror := self.prefixes.mirrored(holder)) is not None:
            mirror.begin(lease.chain)
        if leads(lease.decision, view):
            sent = lease.granted_at
            ready = when_read(lease.decision, sent)
            self.leaders.begin(holder, lease.id, lease.chain, sent, ready, seen=lease.request.stream)
        self.paces.setdefault(lease.backend, Pace()).sent(lease)

    def _swap(self, lease: Lease, holder: str, slot: int, factor: float) -> Swap | None:
        """What should be saved and restored before it is sent."""
        told, lost = self._told[lease.id], self._told[lease.id].displaced
        held = lease.chain.common_bytes(lost) if lost is not None else 0
        if lost is None and told.segments and told.segments[0].bin < bin_of(1.0):
            held = told.bytes
        return self.slot_files.plan(
            holder,
            slot,
            lease.chain,
            held=held,
            loses=(lost, told.displaced_tokens) if lost is not None else None,
            comes_back=self._worth(lost) if lost is not None else 0.0,
            seconds_a_token=lease.offer.speed.prefill.seconds(1000, 0) * factor / 1000.0,
        )

    def swapped(self, lease: Lease, swap: Swap, *, saved: bool, restored: bool, seconds: float) -> None:
        """What was to be saved and restored for it was, as far as that went."""
        self.slot_files.done(
            _holder(lease.backend, lease.offer.model), swap, saved=saved, restored=restored, seconds=seconds
        )

    def first_token(self, lease: Lease, totals: Totals, now: float) -> None:
        """The prompt has been computed; `totals` are its backend's since."""
        holder = _holder(lease.backend, lease.offer.model)
        self.leaders.end(holder, lease.id)
        self.prefixes.confirm(holder, lease.chain)
        self.paces.setdefault(lease.backend, Pace()).first_token(lease, totals, now)

    def tokens_in(self, lease: Lease, events: int) -> int:
        """Output tokens that so many streamed events carry there."""
        size = self.events.get(_holder(lease.backend, lease.offer.model))
        return size.tokens(events) if size is not None else events

    def progressed(self, lease: Lease, tokens: int, now: float) -> None:
        """So many tokens of its answer are there."""
        pace = self.paces.get(lease.backend)
        if pace is not None:
            pace.progressed(lease, tokens, now)

    def orphans(self, lease: Lease) -> int:
        """Tokens of a lease that ends which stay reserved, for those who share its prefix; ask once, as it is settled.

        Negative: it was the last to use what others had left reserved.
        """
        sharing = self._sharing.get(_holder(lease.backend, lease.offer.model))
        return sharing.leave(lease.id) if sharing is not None else 0

    def forget_cache(self, backend: str, models: Iterable[str]) -> None:
        """The engine restarted: its cache is empty."""
        for model in models:
            self.prefixes.forget(_holder(backend, model))
            self.leaders.forget(_holder(backend, model))

    def blocks_told(self, backend: str, model: str, events: list[Event], now: float) -> None:
        """An engine said which blocks its cache took in and lost."""
        holder = _holder(backend, model)
        self.prefixes.mirror(holder).apply(events, now)
        self.prefixes.told(holder)

    def remove(self, backend: str, models: Iterable[str]) -> None:
        """The backend is gone for good."""
        for model in models:
            self.prefixes.remove(_holder(backend, model))
            self.leaders.forget(_holder(backend, model))
            self.trust.forget(_holder(backend, model))
            self._sharing.pop(_holder(backend, model), None)
            self.slot_files.forget(_holder(backend, model))
            self._grains.pop(_holder(backend, model), None)
            self.events.pop(_holder(backend, model), None)
        self.paces.pop(backend, None)
        self.sessions.remove(backend)

    # --- how fast

    def factors(self, backend: str, now: float) -> tuple[float, float]:
        """(prefill, decode): observed over predicted seconds of that backend."""
        pace = self.paces.get(backend)
        return pace.factors(now) if pace is not None else (1.0, 1.0)

    def residuals(self, backend: str) -> list[tuple[Phase, float]]:
        """Observed over predicted seconds of that backend, by phase, as was learned since somebody last asked."""
        pace = self.paces.get(backend)
        if pace is None or not pace.residuals:
            return []
        found, pace.residuals = pace.residuals, []
        return found

    # --- learning

    def learn(self, lease: Lease, ended: Ended, counts: TextCounts | None, totals: Totals, now: float) -> None:
        """Learn from one attempt that is over; `totals` are its backend's without it."""
        request, model = lease.request, lease.offer.model
        holder = _holder(lease.backend, model)
        told = self._told.pop(lease.id, None)
        if lease.swap is not None:  # it was never sent
            self.swapped(lease, lease.swap, saved=False, restored=False, seconds=0.0)
        self.lessons += 1
        self.leaders.end(holder, lease.id)
        self.prefixes.end(holder, lease.chain, ended.output_tokens or 0)
        self.sessions.ended(lease.chain, now, calls=ended.calls)
        if (mirror := self.prefixes.mirrored(holder)) is not None:
            mirror.end(lease.chain, ended.prompt_tokens, ended.cached_tokens, now)
        if ended.prompt_tokens:
            if ended.text_only and counts is not None and not was_cut(lease, ended):
                answer = ended.output_tokens or 0 if request.n == 1 else 0
                self.tokens.learn(model, request.client, counts, ended.prompt_tokens, lease.chain, answer)
            if request.media and counts is not None and not was_cut(lease, ended):
                tokens = ended.media_tokens
                if tokens is None:
                    tokens = ended.prompt_tokens - self.tokens.estimate(model, request.client, counts).tokens
                self.media.learn(model, request.client, request.media, tokens)
            cached = self._cached(lease, ended, told, holder, now) if told is not None else None
            if told is not None and cached is not None:
                if ended.cached_tokens:
                    self._grains.setdefault(holder, Granularity()).learn(ended.cached_tokens, lease.block)
                block = max(lease.block, self._step(holder))
                self.trust.learn(holder, told, ended.prompt_tokens, cached, block)
        if ended.output_tokens:
            # Of an answer that was cut off nobody counted the tokens, only the events.
            output = ended.output_tokens if ended.completed else self.tokens_in(lease, ended.output_tokens)
            per_choice = max(1, output // request.n)
            self.outputs.learn(key_of(model, request), per_choice + request.given, ended.finished, now)
            self.drained(request.model, now).completed((ended.prompt_tokens or 0) + ended.output_tokens, now)
        if ended.completed and ended.events and ended.output_tokens:
            self.events.setdefault(holder, EventSize()).learn(ended.events, ended.output_tokens)
        pace = self.paces.get(lease.backend)
        if pace is not None:
            pace.ended(lease, ended, totals, now)


def _chooses(view: BackendView) -> bool:
    """Whether it is told which slot to take: where nobody else is there, who might be in it."""
    return view.backend.chooses_slots and not view.foreign


def _holder(backend: str, model: str) -> str:
    """Caches of two models on one backend share nothing."""
    return f"{backend}\n{model}"


def backend_of(holder: str) -> str:
    """The backend's name in a holder's."""
    return holder.partition("\n")[0]

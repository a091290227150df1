"""A request as numbers: all that a decision may know about it. No prompt text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from math import trunc

from gateway.core.boundary import Label
from gateway.core.bounds import Bound
from gateway.core.estimators.answer_shape import PLAIN, AnswerShape
from gateway.core.media import NO_MEDIA, Media

__all__ = ["Consent", "Estimate", "Hit", "Request"]

SURE = 3
"""Margins of an estimate, each of which 95 % of prompts stay within, that all but a few in a thousand stay within."""
UNLIKE = 0.25
"""Share of a prompt that it may have more than what was learned of other prompts says, where none of it was counted."""


class Consent(IntEnum):
    """How far a fallback may go from the model that was asked for."""

    NONE = 0
    QUANT = 1
    ANY = 2


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one model's tokenizer and habit make of a request; all in tokens.

    `prompt` is the best guess and `prompt_high` the safe side (95 %); `output` is the mean and `output_high` the
    quantile to reserve, on a backend with much room `output_roomy`, with little `output_tight` (None: the same); all
    outputs count one choice. `tier` names the estimator that answered (A bytes, B anchored,
    C exact).
    """

    prompt: int
    prompt_high: int
    output: int
    output_high: int
    tier: str = "A"
    prompt_floor: int | None = None
    """What text of this size has at least, whatever was learned of other text; None: the learned spread decides."""
    output_roomy: int | None = None
    output_tight: int | None = None

    prompt_ceiling: int | None = None
    """What text of these kinds may have with a vocabulary that is poor in it, as far as nothing was learned of them."""

    def output_in(self, room: int) -> int:
        """Output tokens of one choice to reserve on a backend with so much room (`output_quantiles.room_of`)."""
        found = (self.output_roomy, None, self.output_tight)[room]
        return self.output_high if found is None else found

    @property
    def prompt_low(self) -> int:
        """Tokens that the prompt has at least: only below this nothing may be refused for its length."""
        low = max(1, 2 * self.prompt - self.prompt_high)
        return low if self.prompt_floor is None or low < self.prompt_floor else max(1, self.prompt_floor)

    @property
    def prompt_most(self) -> int:
        """Tokens that the prompt has at most, for all but a few in ten thousand."""
        margin = SURE * (self.prompt_high - self.prompt)
        if self.tier == "A":
            margin = max(margin, trunc(UNLIKE * self.prompt), (self.prompt_ceiling or 0) - self.prompt)
        return self.prompt + margin

    @property
    def described(self) -> str:
        """How the prompt's number was found, and how far it may be off; for a person."""
        if self.tier == "C":
            return "counted"
        how = "partly counted, partly estimated" if self.tier == "B" else "estimated"
        return f"{how}: {self.prompt_low} to {self.prompt_high}"

    def at_least(self, counted: int) -> Estimate:
        """The same once an engine has counted so many tokens in the prompt."""
        exact = max(self.prompt, counted)
        return replace(self, prompt=exact, prompt_high=exact, tier="C", prompt_floor=None, prompt_ceiling=None)


@dataclass(frozen=True, slots=True)
class Hit:
    """What prefix a backend is believed to hold.

    `share` is the part of the prompt (0..1, by bytes) that matched; `trust` the probability that it is still
    resident; `pinned` is the part of the prompt that running requests there use, as far as it is trusted to be
    shared, so its blocks are not charged twice; `held` is how many tokens those have reserved for it (None: all).
    `pending` is the part that is being read there for another request, as far as it is trusted to be shared then, since
    `sent`, and `ready` is when that should be done (seconds on the monotonic clock). `evicts` is how many tokens of
    other conversations it would push out there, each by the probability that its conversation comes back.
    """

    share: float
    trust: float
    pinned: float = 0.0
    held: int | None = None
    pending: float = 0.0
    sent: float = 0.0
    ready: float = 0.0
    evicts: float = 0.0
    step: int = 1
    """Tokens in whose multiples hits were seen to come there."""

    def tokens(self, prompt: int, block: int) -> int:
        """Tokens expected from the cache.

        Whole blocks, and never the whole prompt (the last token is always computed).
        """
        expected = trunc(prompt * self.share * self.trust)
        expected -= expected % (max(self.step, block))
        return expected if expected < prompt else max(prompt - 1, 0)


@dataclass(frozen=True, slots=True)
class Request:
    """One request, ready to be decided upon. Times are seconds on the gateway's monotonic clock."""

    id: str
    model: str
    client: str
    klass: str
    label: Label
    arrival: float
    deadline: float
    """When it leaves the queue unserved (arrival + queue.wait)."""
    estimates: Mapping[str, Estimate]
    """By model id: for the model asked for and each fallback."""
    max_tokens: int | None = None
    n: int = 1
    stream: bool = False
    needs: frozenset[str] = frozenset()
    consent: Consent = Consent.QUANT
    allowed: frozenset[str] | None = None
    """Fallbacks that its caller names as those that may stand in; None: as far as `consent` goes."""
    tried: frozenset[str] = frozenset()
    attempt: int = 0
    session: str | None = None
    hits: Mapping[str, Hit] = field(default_factory=dict)
    """By backend name: refreshed by the dispatcher before each decision."""
    surface: str = "chat"
    """What the client called."""
    surfaces: frozenset[str] = frozenset()
    """What an engine may be asked in so that the client can be answered: the same, or what translates; empty: any."""
    lost: tuple[str, ...] = ()
    """Members of the body that stand in the way of a translation, by path; for the refusal."""
    keeper: str | None = None
    """The backend that keeps the answer which this request goes on from; no other can serve it."""
    context: int | None = None
    """Tokens of prompt and output that its key or class allows, as `bound` says; None: any."""
    bound: Bound = Bound.KEY
    shape: AnswerShape = PLAIN
    """What its answer is to be like: most of what its length depends on."""
    promised: float | None = None
    """When it was told to come back, after it had been turned away once; None: it was not."""
    due: float = 0.0
    """When its first token should be there; orders the requests of one session. 0: as soon as it came."""
    media: Media = NO_MEDIA
    """What its prompt holds beside text."""
    resumes: bool = False
    """Whether its answer, if it breaks off, may go on in another engine."""
    resumed: int = 0
    """How often its answer went on in another engine."""
    given: int = 0
    """Tokens of its answer that earlier engines gave; for this attempt they are part of the prompt."""
    placement: int = 0
    """Hash of the first 4 KiB: places a cold prompt the same way each time."""
    thread: int = 0
    """Hash of what its conversation begins with."""
    home: str | None = None
    """The backend that served the last turn of its conversation, where its client names that; a hint."""

    def at_least(self, counted: int) -> Request:
        """The same request once an engine has counted so many tokens in its prompt."""
        return replace(self, estimates={model: each.at_least(counted) for model, each in self.estimates.items()})

    def after_failure_on(self, backend: str) -> Request:
        """The same request for its next attempt, not to be sent to this backend again."""
        return replace(self, tried=self.tried | {backend}, attempt=self.attempt + 1)

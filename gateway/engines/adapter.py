"""What kvgate knows of an engine, as values, and what an adapter must answer.

Adapters never do I/O: the fleet asks the probes and hands the answers in, by key (the path, mostly). A number that an
engine does not tell is None, never 0: a missing load figure must neither attract nor repel traffic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from gateway.core.failure import FailureKind
from gateway.engines.counting import Counting, Rendering
from gateway.engines.told import Answer, Facts, FoundModel, Load, Probe
from gateway.wire.chat_request import ChatRequest

__all__ = [
    "Answer",
    "Counting",
    "Engine",
    "Facts",
    "Failure",
    "FailureKind",
    "FoundModel",
    "Load",
    "Probe",
    "Rendering",
    "Resuming",
    "Traits",
]


@dataclass(frozen=True, slots=True)
class Failure:
    """An engine's error, classified.

    message: for the client, in one wording for all engines where clients match on it. limit, requested: tokens, for
    CONTEXT; prompt: those that it counted in the prompt alone. retryable: another backend may do better. blame: counts
    against this backend's health.
    """

    kind: FailureKind
    message: str
    limit: int | None = None
    requested: int | None = None
    prompt: int | None = None
    retryable: bool = False
    blame: bool = False


Resuming: TypeAlias = Literal["", "ids", "pieces"]
"""How an engine takes an answer so far, besides as a last message that is left open (`continue_final_message`): as the
ids of its tokens, which it tells when asked (`return_token_ids`), or as pieces of text that are a token each."""


@dataclass(frozen=True, slots=True)
class Traits:
    """How an engine behaves.

    shares_prefix: requests that run at the same time share KV blocks of a common prefix. block: tokens that a prefix
    hit is rounded down to. stream_always: only streams are cancelled when the connection closes, so ask for streams.
    max_n_is_slots: `n` over the slot count is refused. abort_settle_s: seconds until an aborted request's place is
    free. poll_floor_s: the shortest seconds between load probes. reports_cached: usage tells cached tokens.
    default_slots: assumed when the engine does not tell how many requests it runs. surfaces: names of `wire.surfaces`
    that it is taken to speak where discovery does not tell. also: those that discovery may find besides, as they hang
    on model, version or start options. drops: top-level members that are taken out of every body, since they steer the
    engine and not the answer. counts_media: what it counts includes the tokens of pictures and sounds. resumes: how it
    goes on best with an answer that another engine began; "" where nothing is known. salted: surfaces on which
    `cache_salt` keeps a prompt apart from others' in its cache.
    """

    shares_prefix: bool
    block: int
    stream_always: bool
    max_n_is_slots: bool
    abort_settle_s: float
    poll_floor_s: float
    reports_cached: bool
    default_slots: int
    surfaces: frozenset[str]
    also: frozenset[str] = frozenset()
    drops: tuple[str, ...] = ()
    counts_media: bool = False
    resumes: Resuming = ""
    salted: frozenset[str] = frozenset()


class Engine(Protocol):
    """One engine's adapter."""

    @property
    def name(self) -> str:
        """The engine's name in the configuration."""

    @property
    def traits(self) -> Traits:
        """How it behaves."""

    @property
    def discovery(self) -> tuple[Probe, ...]:
        """What to ask first for `facts`."""

    @property
    def loading(self) -> tuple[Probe, ...]:
        """What to ask for `load`."""

    def follow_up(self, answers: Mapping[str, Answer]) -> tuple[Probe, ...]:
        """What else to ask for `facts`, given the answers to `discovery`. Never raises for an odd answer."""

    def facts(self, answers: Mapping[str, Answer]) -> Facts:
        """Read the answers to `discovery` and `follow_up`, by key. Never raises for an odd answer."""

    def load(self, answers: Mapping[str, Answer]) -> Load:
        """Read the answers to `loading`, by key. Never raises for an odd answer."""

    def reply_load(self, headers: Mapping[str, str]) -> Load | None:
        """Read a report of load in the head of an answer, names in lower case; None where there is none."""

    def failure(self, status: int, payload: bytes) -> Failure:
        """Classify an error answer, or the JSON of an error event with the status it came with."""

    def streams_upstream(self, req: ChatRequest) -> bool:
        """Whether this request is sent as a stream; an answer that the client wants whole is then assembled."""

    def edits(
        self, req: ChatRequest, *, served_as: str, stream: bool, max_tokens: int | None
    ) -> Mapping[str, bytes | None]:
        """Top-level edits for `wire.splice`: raw JSON to set, None to remove.

        `stream` is what `streams_upstream` said; `max_tokens` the output budget to set, None to leave the client's.
        """

    def surface_edits(self, surface: str) -> Mapping[str, bytes | None]:
        """Top-level edits, beside those of its dialect, for a body that passes through to that surface."""

    def headers(self, request_id: str) -> Mapping[str, str]:
        """Headers for one attempt; `request_id` must be fresh for each."""

    def path(self, surface: str) -> str:
        """Where it has that surface. Raises KeyError for a name that is none."""

    def credential(self, key: str) -> tuple[str, str]:
        """Name and value of the header that carries the backend's key."""

    def surface_headers(self, surface: str) -> Mapping[str, str]:
        """Headers that a request of that surface needs and that are sent where the client gave none of that name."""

    def rendering(self, surface: str, body: bytes) -> Rendering | None:
        """Have the tokens of a prompt listed, as raw JSON; None where it can't be asked."""

    def counting(self, surface: str, body: bytes, served_as: str) -> Counting | None:
        """Have the tokens of a prompt counted that comes as a body of that surface; None where it can't be asked."""

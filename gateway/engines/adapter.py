"""What kvgate knows of an engine, as values, and what an adapter must answer.

Adapters never do I/O: the fleet asks the probes and hands the answers in, by key (the path, mostly). A number that an
engine does not tell is None, never 0: a missing load figure must neither attract nor repel traffic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from gateway.core.failure import FailureKind
from gateway.wire.chat_request import ChatRequest

__all__ = [
    "Answer",
    "Engine",
    "Facts",
    "Failure",
    "FailureKind",
    "FoundModel",
    "Load",
    "Probe",
    "Traits",
]


@dataclass(frozen=True, slots=True)
class Probe:
    """One request that tells something about an engine; it never starts a generation and never loads a model.

    body: JSON, sent as such when it is not empty. headers: beside the backend's credential. name: the key of its answer
    where several go to one path. kept: the answer stays good for as long as the engine runs, so it is asked once after
    each start and then seldom.
    """

    method: str
    path: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    name: str = ""
    kept: bool = False

    @property
    def key(self) -> str:
        """Under which its answer is handed in."""
        return self.name or self.path


@dataclass(frozen=True, slots=True)
class Answer:
    """What a probe got. Header names are in lower case. No answer at all: leave the key out of the mapping."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model that an engine serves.

    window: tokens that one request may use, prompt and output together. trained_window: tokens that the weights were
    trained for. default_window: tokens that the engine gives it where nobody said otherwise and it does not tell.
    params: number of weights. size_bytes: of the weights file. kv_bytes_per_token: of KV cache. surfaces, abilities:
    its own where models of one engine differ (embedding models, vision); None: the engine's.
    """

    id: str
    aliases: tuple[str, ...] = ()
    window: int | None = None
    trained_window: int | None = None
    params: int | None = None
    size_bytes: int | None = None
    kv_bytes_per_token: float | None = None
    default_window: int | None = None
    surfaces: frozenset[str] | None = None
    abilities: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What discovery found.

    slots: requests that run at once. pool_tokens: tokens of KV cache for all of them together. block: tokens of a KV
    block. unified: slots share one pool (llama.cpp). abilities: as in ChatRequest.needs. surfaces: names of
    `wire.surfaces` that it was found to speak; None: not told, its traits count. notes: what was assumed, for
    `kvgate check`. loading: the engine is up but its model is not.
    """

    models: tuple[FoundModel, ...] = ()
    slots: int | None = None
    pool_tokens: int | None = None
    block: int | None = None
    unified: bool | None = None
    version: str | None = None
    abilities: frozenset[str] = frozenset()
    surfaces: frozenset[str] | None = None
    notes: tuple[str, ...] = ()
    loading: bool = False


@dataclass(frozen=True, slots=True)
class Load:
    """A sample of an engine's load.

    running, waiting: requests. kv_usage: share of the KV pool in use, 0 to 1. kv_tokens: tokens in it. preemptions,
    tokens_generated: counters since its start. restarted_at: Unix seconds of its start.
    """

    running: int | None = None
    waiting: int | None = None
    kv_usage: float | None = None
    kv_tokens: int | None = None
    preemptions: float | None = None
    tokens_generated: float | None = None
    restarted_at: float | None = None
    loading: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """An engine's error, classified.

    message: for the client, in one wording for all engines where clients match on it. limit, requested: tokens, for
    CONTEXT. retryable: another backend may do better. blame: counts against this backend's health.
    """

    kind: FailureKind
    message: str
    limit: int | None = None
    requested: int | None = None
    retryable: bool = False
    blame: bool = False


@dataclass(frozen=True, slots=True)
class Traits:
    """How an engine behaves.

    shares_prefix: requests that run at the same time share KV blocks of a common prefix. block: tokens that a prefix
    hit is rounded down to. stream_always: only streams are cancelled when the connection closes, so ask for streams.
    max_n_is_slots: `n` over the slot count is refused. abort_settle_s: seconds until an aborted request's place is
    free. poll_floor_s: the shortest seconds between load probes. reports_cached: usage tells cached tokens.
    default_slots: assumed when the engine does not tell how many requests it runs. surfaces: names of `wire.surfaces`
    that it is taken to speak where discovery does not tell. drops: top-level members that are taken out of every body,
    since they steer the engine and not the answer.
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
    drops: tuple[str, ...] = ()


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

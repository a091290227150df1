"""What an engine is asked, what it answered, and what an adapter made of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.core.kv.engine_pool import NOTHING_TOLD, EnginePool

__all__ = ["Answer", "Facts", "FoundModel", "Load", "Probe"]


@dataclass(frozen=True, slots=True)
class Probe:
    """One request that tells something about an engine; it never loads a model nor, but for the canary's, generates.

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
    `kvgate check`. loading: the engine is up but its model is not. pool: what else it tells of its KV pool. started_at:
    Unix seconds of its start. capacity: as in Load.
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
    pool: EnginePool = NOTHING_TOLD
    started_at: float | None = None
    capacity: tuple[int, ...] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Load:
    """A sample of an engine's load.

    running, waiting: requests. kv_usage: share of the KV pool in use, 0 to 1. kv_tokens: tokens in it. preemptions,
    tokens_generated: counters since its start. restarted_at: Unix seconds of its start. capacity: figures that only a
    restart changes, in whatever order the adapter likes.
    """

    running: int | None = None
    waiting: int | None = None
    kv_usage: float | None = None
    kv_tokens: int | None = None
    preemptions: float | None = None
    tokens_generated: float | None = None
    restarted_at: float | None = None
    loading: bool = False
    capacity: tuple[int, ...] | None = field(default=None, compare=False)

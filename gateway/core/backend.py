"""What is declared about a backend, and what it offers: facts that change by reload or discovery, not by load."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.core.boundary import Label
from gateway.core.confidence import Confidence
from gateway.core.estimators.speed_prior import SpeedPrior
from gateway.core.kv.shape import KvShape

__all__ = ["Backend", "Device", "Offer"]


@dataclass(frozen=True, slots=True)
class Device:
    """A complete instance: what it holds, how fast it reads, how fast it computes.

    memory in bytes (of all `count` devices), bandwidth in bytes/s and flops in dense 16-bit FLOP/s (one device);
    `mfu` is the share of flops that prefill reaches; `step_overhead` and `sequence_overhead` are seconds a decode
    step and a sequence in it; `budget` is the share of memory that engines may use; `source` and `confidence`: where
    the figures come from and how far to trust them. Constants: catalogue and roofline figures.
    """

    id: str
    memory: int
    bandwidth: float
    flops: float
    mfu: float = 0.30
    step_overhead: float = 0.002
    sequence_overhead: float = 0.0003
    budget: float = 0.90
    count: int = 1
    tensor_parallel: int = 1
    known: bool = True
    source: str = ""
    confidence: Confidence = Confidence.HIGH


@dataclass(frozen=True, slots=True)
class Offer:
    """One model as one backend serves it now: declared, discovered and catalogue facts merged.

    `window` is tokens a request (prompt and output together); `kv` gives bytes a sequence; `speed` predicts seconds.
    """

    model: str
    served_as: str
    window: int
    kv: KvShape
    speed: SpeedPrior
    aliases: tuple[str, ...] = ()
    abilities: frozenset[str] = frozenset()
    surfaces: frozenset[str] | None = None
    """What it may be asked in (chat, messages, embeddings ...); None: not known, anything may be tried."""
    weight_bits: float = 0.0
    """Bits a weight, scales included; 0: not known."""
    sources: tuple[tuple[str, str], ...] = ()
    """(fact, where it came from) pairs: ("window", "engine"), ("kv", "catalogue") ..., for `check` and `explain`."""

    def answers_to(self, model: str) -> bool:
        """Say whether this is the model of that id, by any of its names."""
        return model == self.model or model == self.served_as or model in self.aliases


@dataclass(frozen=True, slots=True)
class Backend:
    """One declared backend. No URL and no key here: the core decides, the shell connects.

    `queued_prefill` is the seconds of prefill that may wait inside the engine before a backend counts as closed (2 s:
    late binding without starving chunked prefill). `shares_prefix`: concurrent requests share the KV cache of a
    common prefix.
    """

    name: str
    engine: str
    device: Device
    clearance: Label = Label.RESTRICTED
    off_premises: bool = False
    queued_prefill: float = 2.0
    shares_prefix: bool = True
    keeps_sequences: bool = False
    """Its cache holds one whole sequence a slot (llama.cpp) and not blocks that are evicted one by one."""
    chooses_slots: bool = False
    """It is told in which slot to work."""
    saves_slots: bool = False
    """It can write what a slot holds to its disk, and read it back."""
    headroom: float = 0.92
    abilities: frozenset[str] | None = None
    """None: whatever was detected; else exactly these."""
    context_cap: int | None = None
    """Tokens; an operator's cap below the engine's own window."""
    one_model: bool = False
    """Its engine holds one model at a time and swaps when asked for another."""
    labels: tuple[str, ...] = field(default=())

"""What is seen of one backend at a moment, of all that tells how it fares. What is None was not told."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.degrading.phase import Phase
from gateway.core.failure import FailureKind
from gateway.core.health.device_reading import DeviceReading
from gateway.core.snapshot import Health

__all__ = ["Signs"]


@dataclass(frozen=True, slots=True)
class Signs:
    """Seconds, shares of 1, counts.

    health, for `health_s`; error: what the last probe met. failure: what opened the breaker. running: our requests
    there; silent_s: how long none of them got a token beyond what was predicted. prefill and decode: how many times as
    slow as usual, 1 without an alarm; leaning: phases that are or seem to become slower. preemptions: a second, over
    the last minute; memory_errors: answers of the last ten minutes that told of too little memory. kv_usage and
    waiting: by the engine's last report. foreign: of the pool, held by others; foreign_running: their requests. busy:
    share of the last 20 s that prompts took. devices: how many share each layer. reading: what the device says.
    """

    health: Health
    health_s: float = 0.0
    error: str | None = None
    failure: FailureKind | None = None
    running: int = 0
    silent_s: float = 0.0
    prefill: float | None = None
    decode: float | None = None
    leaning: frozenset[Phase] = frozenset()
    preemptions: float | None = None
    memory_errors: int = 0
    kv_usage: float | None = None
    waiting: int | None = None
    foreign: float = 0.0
    foreign_running: int = 0
    busy: float = 0.0
    devices: int = 1
    reading: DeviceReading | None = None

"""What a device says of itself, by an exporter or the agent that runs beside it: clocks, power, heat, memory, links."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["READING_LIFE", "DeviceReading"]

READING_LIFE = 60.0
"""Seconds after which a reading says nothing any more."""

_IDLE = 0.2


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """One look at a backend's devices; of several the worst one counts, and is named. None: not told, which is neither
    normal nor an alarm.

    at: seconds on the gateway's monotonic clock. clocks in MHz, power in W, temperature in °C, memory in bytes.
    throttled: words for what holds the clocks down ("thermal", "hw_slowdown", "power_brake", "power_cap").
    xid_errors: NVIDIA's numbers for faults that were logged. link_gbps: of the slowest network link that is up.
    pcie_replays: a counter. utilization: share of time that kernels ran.
    """

    at: float
    device: str | None = None
    sm_clock_mhz: float | None = None
    max_sm_clock_mhz: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    slowdown_temperature_c: float | None = None
    throttled: frozenset[str] | None = None
    memory_free_bytes: int | None = None
    memory_total_bytes: int | None = None
    xid_errors: frozenset[int] = frozenset()
    link_gbps: float | None = None
    max_link_gbps: float | None = None
    pcie_gen: int | None = None
    pcie_width: int | None = None
    pcie_replays: float | None = None
    utilization: float | None = None

    @property
    def clock(self) -> float | None:
        """Clock over the highest one, 0 to 1; None where it isn't told, or idle: then it is low, as it should be."""
        if not self.sm_clock_mhz or not self.max_sm_clock_mhz:
            return None
        if self.utilization is not None and self.utilization < _IDLE:
            return None
        return self.sm_clock_mhz / self.max_sm_clock_mhz

    def as_json(self) -> dict[str, Any]:
        """All that it says but when; what it doesn't say is null."""
        told = {key: value for key, value in asdict(self).items() if key != "at"}
        held = sorted(self.throttled) if self.throttled is not None else None
        return told | {"throttled": held, "xid_errors": sorted(self.xid_errors)}

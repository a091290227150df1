"""One entry of the device catalogue (plain mappings, as a YAML reader gives them) to a Device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.core.backend import Device
from gateway.core.confidence import Confidence

__all__ = ["device_from_entry"]

_REACH = 0.30
"""Share of the paper rate that prefill reaches where no run was published."""
_BUDGET = 0.90
"""Share of memory that engines may use, as their own defaults have it."""


def device_from_entry(entry: Mapping[str, Any]) -> Device:
    """A catalogue entry as a value. Raises KeyError or ValueError if a figure is missing or wrong.

    The better of the 16-bit and the 32-bit rate counts: hardware without 16-bit units computes in 32 bit. Memory that
    CPU and GPU share (`memory_type`: unified) answers a millisecond later.
    """
    tflops = [float(entry["tflops"].get(kind) or 0.0) for kind in ("fp16", "fp32")]
    unified = "unified" in str(entry.get("memory_type") or "")
    return Device(
        id=str(entry["id"]),
        memory=int(entry.get("memory_bytes") or 0),
        bandwidth=float(entry["bandwidth_gbs"]) * 1e9,
        flops=max(tflops) * 1e12,
        mfu=float(entry.get("prefill_reach") or _REACH),
        step_overhead=0.003 if unified else 0.002,
        budget=float(entry.get("memory_budget") or _BUDGET),
        source=str(entry.get("source") or ""),
        confidence=Confidence(entry.get("confidence") or "high"),
    )

"""What a device says of itself, in one line for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["device_is_odd", "device_words"]

_USUAL = frozenset({"power_cap"})
"""Cards with a limit below their worst case run at it all day."""


def device_words(told: Mapping[str, Any]) -> str:
    """Of a reading as JSON (`device_reports` of /admin/backends); what it lacks is left out."""
    age = told.get("age_seconds")
    if "device" not in told and isinstance(age, int | float):
        return ", ".join((f"nothing for {age:,.0f} s", *_parts(told)))
    return ", ".join(_parts(told)) or "nothing told yet"


def device_is_odd(told: Mapping[str, Any]) -> bool:
    """Whether somebody should look at it."""
    is_stale = "device" not in told and told.get("age_seconds") is not None
    return is_stale or bool(told.get("trouble") or told.get("xid_errors") or set(told.get("throttled") or ()) - _USUAL)


def _parts(told: Mapping[str, Any]) -> Iterator[str]:
    yield from _of(told, "sm_clock_mhz", "max_sm_clock_mhz", 1.0, "MHz")
    yield from _of(told, "temperature_c", None, 1.0, "°C")
    yield from _of(told, "power_w", "power_limit_w", 1.0, "W")
    yield from _of(told, "memory_free_bytes", "memory_total_bytes", 2.0**30, "GiB free")
    yield from _of(told, "link_gbps", "max_link_gbps", 1.0, "Gb/s link")
    if told.get("throttled"):
        yield f"slowed by {' and '.join(map(str, told['throttled']))}"
    if told.get("xid_errors"):
        yield f"Xid {', '.join(map(str, told['xid_errors']))}"
    if told.get("device") not in (None, "0"):
        yield f"by {told['device']}"
    if told.get("trouble"):
        yield f"not told: {told['trouble']}"


def _of(told: Mapping[str, Any], key: str, whole: str | None, scale: float, unit: str) -> Iterator[str]:
    value, most = told.get(key), told.get(whole) if whole else None
    if isinstance(value, int | float):
        of = f" of {_figure(most / scale)}" if isinstance(most, int | float) else ""
        yield f"{_figure(value / scale)}{of} {unit}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 20.0 else f"{value:.1f}".removesuffix(".0")

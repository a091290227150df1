"""What the admin port says, in the few words that a table has room for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rich.text import Text

from gateway.telemetry.figures import seconds

__all__ = ["compact", "health_text", "plain", "reason_words", "span", "why_text"]

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MOODS = {
    "up": "green",
    "trial": "yellow",
    "loading": "yellow",
    "draining": "yellow",
    "resting": "yellow",
    "unknown": "yellow",
    "open": "red",
    "down": "red",
}
_NOT_THERE = frozenset(("down", "draining", "breaker_open", "resting", "loading"))
_ELSEWHERE = frozenset(("not_served", "outside_boundary", "missing_ability", "surface_not_offered", "not_the_keeper"))
"""Reasons why a backend is none of a request's at all."""


def plain(text: object) -> str:
    """Text that can't drive a terminal."""
    return _UNPRINTABLE.sub("", str(text))


def compact(value: object) -> str:
    """Tokens in two or three digits: 950, 1.2k, 61k, 1.31M; "–" for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–"
    size = abs(value)
    for unit, scale in (("M", 1e6), ("k", 1e3)):
        scaled = value / scale
        if size >= 0.9995 * scale:
            return f"{scaled:.0f}{unit}" if abs(scaled) >= 9.95 else f"{scaled:.1f}{unit}"
    return f"{value:.0f}"


def span(value: object) -> str:
    """A duration of a second or more in one or two digits: 4.2 s, 38 s, 5 min, 3 h; "–" for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–"
    if value >= 7200:
        return f"{value / 3600:.0f} h"
    if value >= 120:
        return f"{value / 60:.0f} min"
    return f"{value:.0f} s" if value >= 9.95 else f"{value:.1f} s" if value >= 0.05 else seconds(0) + " s"


def health_text(row: Mapping[str, Any]) -> Text:
    """A dot in the colour of its health, and its name."""
    health = str(row.get("health", "?"))
    style = _MOODS.get(health, "yellow")
    return Text.assemble(
        ("● " if style == "green" else "▲ " if style == "yellow" else "✗ ", style),
        (plain(row.get("name", "?")), "bold"),
    )


def reason_words(reason: object) -> str:
    """A reason's name as words."""
    words = str(reason).replace("_", " ")
    return {"kv full": "KV full", "kv scarce": "KV scarce", "tpot limit": "TPOT limit"}.get(words, words)


def why_text(row: Mapping[str, Any]) -> str:
    """Why a request waits: backends by what is in the way on them, or the reason in a sentence."""
    backends: Mapping[str, str] = row.get("backends") or {}
    if row.get("reason") in ("queued", "worth_waiting") and backends:
        shown = {name: reason for name, reason in backends.items() if reason not in _ELSEWHERE} or backends
        by_reason: dict[str, list[str]] = {}
        for name, reason in sorted(shown.items(), key=lambda item: item[1] in _NOT_THERE):
            by_reason.setdefault(reason, []).append(plain(name))
        return "; ".join(f"{reason_words(reason)}: {', '.join(names)}" for reason, names in by_reason.items())
    return plain(row.get("why") or "")

"""A client's own limits, in words: in a refusal, and in the header fields that its libraries read.

Names of fields as documented by OpenAI (rate limits in headers) and Anthropic (response headers of its API).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime

from gateway.core.quota import ClientLimits, Levels, Quota, Shortfall, whole_left
from gateway.core.token_bucket import Rate
from gateway.wire.surfaces import SURFACES

__all__ = ["over_quota", "quota_fields"]

_UNITS = {1.0: "second", 60.0: "minute", 3600.0: "hour", 86400.0: "day"}
_THINGS = {
    Quota.REQUESTS: "requests",
    Quota.TOKENS: "tokens",
    Quota.KV_SECONDS: "token-seconds of KV cache",
}
_Fields = tuple[tuple[str, str], ...]


def over_quota(client: str, short: Shortfall | None) -> str:
    """Which limit of a client is reached, and what is left of it."""
    if short is None:
        return f"A limit of the key '{client}' is reached."
    if short.quota is Quota.RUNNING:
        return f"The key '{client}' may have {short.amount:g} requests running at once (limit running), and has."
    per = _UNITS.get(short.per or 0.0, f"{short.per:g} s")
    left, things = whole_left(short.left), _THINGS[short.quota]
    text = f"The key '{client}' may use {short.amount:,.0f} {things} per {per} (limit {short.quota}); {left:,} are left"
    return f"{text}." if short.quota is Quota.KV_SECONDS else f"{text}, and this request needs {short.needed:,.0f}."


def quota_fields(surface: str, limits: ClientLimits, levels: Levels, wall: float) -> _Fields:
    """Limit, rest and time to a full bucket of each rate, as clients of that surface know them.

    `wall` in seconds since the Unix epoch: Anthropic's clients are told moments, OpenAI's durations.
    """
    known = SURFACES.get(surface)
    told = _anthropic if known is not None and known.dialect == "anthropic" else _openai
    return tuple(field for quota, rate in limits.rates.items() for field in told(quota, rate, levels.left[quota], wall))


def _openai(quota: Quota, rate: Rate, left: float, _wall: float) -> Iterator[tuple[str, str]]:
    name = _name(quota)
    yield f"x-ratelimit-limit-{name}", f"{rate.amount:.0f}"
    yield f"x-ratelimit-remaining-{name}", str(whole_left(left))
    yield f"x-ratelimit-reset-{name}", _duration(rate.wait(left, rate.amount))


def _anthropic(quota: Quota, rate: Rate, left: float, wall: float) -> Iterator[tuple[str, str]]:
    name = _name(quota)
    full = datetime.fromtimestamp(math.ceil(wall + rate.wait(left, rate.amount)), tz=UTC)
    yield f"anthropic-ratelimit-{name}-limit", f"{rate.amount:.0f}"
    yield f"anthropic-ratelimit-{name}-remaining", str(whole_left(left))
    yield f"anthropic-ratelimit-{name}-reset", f"{full:%Y-%m-%dT%H:%M:%SZ}"


def _name(quota: Quota) -> str:
    return str(quota).replace("_", "-")


def _duration(seconds: float) -> str:
    """As Go writes durations, which is how OpenAI does: `17ms`, `1.5s`, `6m0s`, `2h3m0s`."""
    milliseconds = math.ceil(seconds * 1000 - 1e-6)
    if milliseconds < 1000:
        return f"{milliseconds}ms" if milliseconds else "0s"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:g}s"
    minutes, rest = divmod(math.ceil(seconds - 1e-6), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s"

"""Which header fields of an engine's answer cross the gateway."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

from gateway.relay.sink import Headers

__all__ = ["HOP_BY_HOP", "asked_to_wait", "content_length", "end_to_end", "first", "stream_headers"]

HOP_BY_HOP = frozenset(
    {
        "connection",
        "content-length",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""RFC 9110 section 7.6.1, and the length: every hop frames anew."""

_CROSS = frozenset(
    {
        "content-encoding",
        "content-language",
        "content-type",
        "openai-model",
        "openai-processing-ms",
        "openai-version",
        "request-id",
        "x-request-id",
    }
)
"""What of an engine's header fields its clients may see; all else is the gateway's to say, or nobody's."""
_RATE_LIMITS = ("x-ratelimit-", "anthropic-ratelimit-")
"""Of hosted providers."""


_LONGEST_WAIT = 86_400.0
"""Seconds."""


def first(headers: Headers, name: str) -> str | None:
    """The first value of a field, by its lower-case name."""
    for key, value in headers:
        if key == name:
            return value
    return None


def asked_to_wait(value: str | None, now: float) -> float | None:
    """A Retry-After in seconds: given as a number, or as a date (RFC 9110, 10.2.3). None without one, or past sense.

    `now` in Unix seconds.
    """
    if value is None:
        return None
    try:
        seconds = float(value) if value[:1].isdigit() else parsedate_to_datetime(value).timestamp() - now
    except (ValueError, OverflowError):
        return None
    return min(seconds, _LONGEST_WAIT) if seconds >= 0 else 0.0


def content_length(headers: Headers) -> int | None:
    """The declared length in bytes, if one is declared."""
    value = first(headers, "content-length")
    return int(value) if value is not None and value.isdecimal() else None


def end_to_end(headers: Headers) -> list[tuple[str, str]]:
    """What of an engine's header fields the client gets: those that describe the answer, by name, and no others.

    A redirect, a cookie, a Retry-After on a 200 or a name of the gateway's own would be taken for the gateway's word.
    """
    return [pair for pair in headers if pair[0] in _CROSS or pair[0].startswith(_RATE_LIMITS)]


def stream_headers(headers: Headers, kind: str) -> list[tuple[str, str]]:
    """`end_to_end` for a stream of that content type, plus the two fields that keep proxies in front from holding it
    back."""
    crossing = [pair for pair in end_to_end(headers) if pair[0] not in ("content-type", "content-encoding")]
    return [("content-type", kind), *crossing, ("cache-control", "no-cache"), ("x-accel-buffering", "no")]

"""Which header fields of an engine's answer cross the gateway."""

from __future__ import annotations

from gateway.relay.sink import Headers

__all__ = ["HOP_BY_HOP", "content_length", "end_to_end", "first", "stream_headers"]

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

_OURS = frozenset(("server", "date", "alt-svc", "set-cookie"))  # the edge speaks for itself


def first(headers: Headers, name: str) -> str | None:
    """The first value of a field, by its lower-case name."""
    for key, value in headers:
        if key == name:
            return value
    return None


def content_length(headers: Headers) -> int | None:
    """The declared length in bytes, if one is declared."""
    value = first(headers, "content-length")
    return int(value) if value is not None and value.isdecimal() else None


def end_to_end(headers: Headers) -> list[tuple[str, str]]:
    """What of an engine's header fields the client gets.

    Left out: hop-by-hop fields, those that `Connection` names, the engine's CORS answers and its name.
    """
    named = {token.strip().lower() for key, value in headers if key == "connection" for token in value.split(",")}
    dropped = HOP_BY_HOP | _OURS | (named - {"content-type", "content-encoding"})
    return [pair for pair in headers if pair[0] not in dropped and not pair[0].startswith("access-control-")]


def stream_headers(headers: Headers) -> list[tuple[str, str]]:
    """`end_to_end` for an event stream, plus the two fields that keep proxies in front from holding it back."""
    kept = [pair for pair in end_to_end(headers) if pair[0] not in ("cache-control", "x-accel-buffering")]
    return [*kept, ("cache-control", "no-cache"), ("x-accel-buffering", "no")]

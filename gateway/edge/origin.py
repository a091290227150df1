"""Where a request came from: loopback or not, a browser page or not."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from gateway.errors import Forbidden

__all__ = ["ForeignCaller", "host_of", "is_loopback", "page_is_foreign"]


class ForeignCaller(Forbidden):
    """Whoever calls from another machine, or for a page of another site, where only this machine is served."""

    code = "origin_not_allowed"
    default_reason = None


def host_of(authority: str) -> str:
    """The host of `host[:port]`, without brackets, lower-case; empty when there is none."""
    try:
        return urlsplit(f"//{authority}").hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Whether an address literal, "localhost" or a name under it means this machine."""
    host = host.strip("[]").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool(address.is_loopback or (mapped is not None and mapped.is_loopback))


def page_is_foreign(headers: Mapping[str, str]) -> bool:
    """Whether a web page of another site sent this; programs send no Origin and are never foreign.

    A page is at home only when its Origin is the very host that was called and that host is loopback: a name that
    merely resolves to loopback (DNS rebinding) is not.
    """
    origin = headers.get("Origin")
    if origin is None:
        return headers.get("Sec-Fetch-Site") in ("cross-site", "same-site")
    try:
        parts = urlsplit(origin)
    except ValueError:
        return True
    host = headers.get("Host", "").lower()
    return parts.netloc.lower() != host or not is_loopback(host_of(host))

"""Who is calling: keys compared in constant time, kept only as keyed digests."""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from gateway.edge.origin import ForeignCaller, is_loopback
from gateway.errors import Unauthorized
from gateway.wire.inbound import Client

__all__ = ["LOCAL", "Key", "Keyring", "presented"]

LOCAL = Client("local")
"""Everybody, when no keys are configured: only loopback gets in."""
_WAYS = "'Authorization: Bearer KEY', 'x-api-key: KEY' or 'api-key: KEY'"


@dataclass(frozen=True, slots=True)
class Key:
    """One configured key and whom it belongs to. `secret` is read once, by `Keyring`."""

    secret: str = field(repr=False)
    client: Client


class Keyring:
    """The configured keys, as digests under a key of this process's own.

    No secret stays in memory or can be printed.
    """

    __slots__ = ("_digests", "_salt")

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._salt = os.urandom(32)
        self._digests = tuple((self._digest(key.secret), key.client) for key in keys)

    def _digest(self, secret: str) -> bytes:
        return blake2b(secret.encode("utf-8", "surrogateescape"), key=self._salt, digest_size=32).digest()

    @property
    def open(self) -> bool:
        """Whether no key is configured."""
        return not self._digests

    def identify(self, keys: Iterable[str], peer: str) -> Client:
        """The client that one of these keys belongs to; `presented` gives those of a request.

        Every configured key is compared, whichever matches. Raises Unauthorized for a missing or wrong key, and
        ForeignCaller when no keys are configured and `peer` (an address) is not loopback.
        """
        if not self._digests:
            if is_loopback(peer):
                return LOCAL
            raise ForeignCaller(
                "no API keys are configured here, so only clients on the same machine are served", code="loopback_only"
            )
        found: Client | None = None
        some = False
        for key in keys:
            some = True
            digest = self._digest(key)
            for known, client in self._digests:
                if hmac.compare_digest(known, digest) and found is None:
                    found = client
        if found is None:
            problem = "is not known" if some else f"is missing: send it as {_WAYS}"
            raise Unauthorized(f"the API key {problem}")
        return found


def presented(headers: Mapping[str, str]) -> Iterator[str]:
    """The keys that a request's fields carry. Some clients fill in several fields, one of them from a placeholder.

    A key in the request target is never one: targets are written to logs on the way.
    """
    scheme, _, rest = headers.get("Authorization", "").partition(" ")
    for key in (rest if scheme.lower() == "bearer" else "", headers.get("x-api-key", ""), headers.get("api-key", "")):
        if key.strip():
            yield key.strip()

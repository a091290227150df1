"""Who is calling: keys compared in constant time, kept only as keyed digests."""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

from gateway.edge.origin import ForeignCaller, is_loopback
from gateway.errors import Unauthorized
from gateway.wire.inbound import Client

__all__ = ["LOCAL", "Key", "Keyring"]

LOCAL = Client("local")
"""Everybody, when no keys are configured: only loopback gets in."""


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

    def identify(self, authorization: str | None, api_key: str | None, peer: str) -> Client:
        """The client of the key in `Authorization: Bearer` or `x-api-key`.

        Every configured key is compared, whichever matches. Raises Unauthorized for a missing or wrong key, and
        ForeignCaller when no keys are configured and `peer` (an address) is not loopback.
        """
        if not self._digests:
            if is_loopback(peer):
                return LOCAL
            raise ForeignCaller(
                "no API keys are configured here, so only clients on the same machine are served", code="loopback_only"
            )
        presented = _bearer(authorization) or (api_key or "").strip()
        digest = self._digest(presented)
        found: Client | None = None
        for known, client in self._digests:
            if hmac.compare_digest(known, digest):
                found = client
        if found is None or not presented:
            problem = (
                "is not known"
                if presented
                else "is missing: send it as 'Authorization: Bearer KEY' or 'x-api-key: KEY'"
            )
            raise Unauthorized(f"the API key {problem}")
        return found


def _bearer(authorization: str | None) -> str:
    if authorization is None:
        return ""
    scheme, _, rest = authorization.partition(" ")
    return rest.strip() if scheme.lower() == "bearer" else ""

"""The keys of a policy as the keyring takes them."""

from __future__ import annotations

from hashlib import blake2b

from gateway.config.auth import AuthSpec
from gateway.config.policy import Policy
from gateway.core.boundary import Label
from gateway.edge.auth import Key
from gateway.wire.inbound import Client

__all__ = ["keys_of"]


def keys_of(policy: Policy) -> tuple[Key, ...]:
    """Every configured key with the client it belongs to."""
    auth = policy.auth
    if not isinstance(auth, AuthSpec):
        return ()
    return tuple(
        Key(
            spec.key.reveal(),
            Client(
                name=spec.name,
                models=frozenset(spec.models) if spec.models else None,
                klass=spec.klass,
                label=Label.parse(spec.data) if spec.data is not None else None,
                context=spec.limits.context,
                salt=_salt(spec.key.reveal()) if spec.isolated else None,
            ),
        )
        for spec in auth.keys
    )


def _salt(key: str) -> str:
    """The same for a key on every gateway and after every start, and no way back to the key."""
    return blake2b(key.encode("utf-8", "surrogateescape"), digest_size=16, person=b"kvgate cache").hexdigest()

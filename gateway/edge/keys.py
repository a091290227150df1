"""The keys of a policy as the keyring takes them."""

from __future__ import annotations

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
            ),
        )
        for spec in auth.keys
    )

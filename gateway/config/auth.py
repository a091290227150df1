"""Clients: their keys, and what each may do."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from gateway.config.backends import LabelName
from gateway.config.secrets import SecretText
from gateway.config.sizes import Tokens, Whole
from gateway.config.spec import Name, Spec, some

__all__ = ["Auth", "AuthSpec", "KeyLimits", "KeySpec"]


class KeyLimits(Spec):
    """What one key may use at a time."""

    running: Annotated[Whole, Field(ge=1)] | None = None
    """Requests running at once; more wait in the queue."""
    context: Annotated[Tokens, Field(gt=0)] | None = None
    """Tokens of prompt and output together in one request."""


class KeySpec(Spec):
    """One client: a key, and what it may do."""

    name: Name
    """The client's name in metrics and logs."""
    key: SecretText
    """The API key that the client sends, as ${env.NAME} or ${file:/path}."""
    models: tuple[Name, ...] | None = None
    """Names of models it may ask for; left out: all."""
    klass: Annotated[Name | None, Field(alias="class")] = None
    """Class of its requests; left out: the model's."""
    data: LabelName | None = None
    """Its requests are at least this sensitive; a model's own label counts when it is higher."""
    limits: KeyLimits = KeyLimits()
    """What it may use at a time."""


class AuthSpec(Spec):
    """Who may ask."""

    keys: Annotated[tuple[KeySpec, ...], AfterValidator(some), Field(json_schema_extra={"minItems": 1})]
    """Client keys."""


def _auth_kind(value: Any) -> str:
    return "<word>" if isinstance(value, str) else "<keys>"


Auth = Annotated[
    Annotated[Literal["none"], Tag("<word>")] | Annotated[AuthSpec, Tag("<keys>")], Discriminator(_auth_kind)
]

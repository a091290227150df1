"""Clients: their keys, and what each may do."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from gateway.config.backends import LabelName
from gateway.config.rates import KvSecondsRate, RequestRate, TokenRate
from gateway.config.secrets import SecretText
from gateway.config.sizes import Tokens, Whole
from gateway.config.spec import Name, Spec, some

__all__ = ["Auth", "AuthSpec", "KeyLimits", "KeySpec"]


class KeyLimits(Spec):
    """What one key may use: at a time, and in a time.

    An amount in a time is a bucket, full at the start and filled evenly; what is over it waits in the queue until it
    fits, or is refused when that would be too late. A request is charged what it is likely to use when it is sent to a
    backend, and put right when it has ended. One that is larger than the whole bucket waits for a full one.
    """

    running: Annotated[Whole, Field(ge=1)] | None = None
    """Requests running at once; more wait in the queue."""
    context: Annotated[Tokens, Field(gt=0)] | None = None
    """Tokens of prompt and output together in one request."""
    tokens: TokenRate | None = None
    """Tokens in a time, of prompts (cached ones too) and answers, as engines count them."""
    requests: RequestRate | None = None
    """Requests in a time that were sent to a backend; those whose backend failed don't count."""
    kv_seconds: KvSecondsRate | None = None
    """KV cache in a time: tokens reserved for its requests, times the seconds for which they are. What a running
    request of others holds already is not counted again."""


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
    isolated: bool = False
    """Nobody can tell from the time of an answer what it asked before: vLLM and SGLang cache its prompts apart from
    those of all others (cache_salt). Other engines share as they do."""


class AuthSpec(Spec):
    """Who may ask."""

    keys: Annotated[tuple[KeySpec, ...], AfterValidator(some), Field(json_schema_extra={"minItems": 1})]
    """Client keys."""


def _auth_kind(value: Any) -> str:
    return "<word>" if isinstance(value, str) else "<keys>"


Auth = Annotated[
    Annotated[Literal["none"], Tag("<word>")] | Annotated[AuthSpec, Tag("<keys>")], Discriminator(_auth_kind)
]

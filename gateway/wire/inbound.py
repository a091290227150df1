"""A request as the edge hands it on: bytes and who sent them, not yet read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.core.boundary import Label
from gateway.core.memory import Hold

__all__ = ["AccessNote", "Client", "Inbound", "forwarded"]


@dataclass(frozen=True, slots=True)
class Client:
    """Whoever a key belongs to. Holds no key.

    `models`: names it may use, None for all. `klass` and `label`: overrides of the model's own class and data label.
    `context`: cap in tokens, None for no cap of its own. `salt`: what keeps its prompts apart from others' in caches.
    What it may use at once and in a time is in the plan.
    """

    name: str
    models: frozenset[str] | None = None
    klass: str | None = None
    label: Label | None = None
    context: int | None = None
    salt: str | None = field(default=None, repr=False)


@dataclass(slots=True)
class AccessNote:
    """What is learned about a request on its way, for its line in the access log. Seconds and tokens; no prompt text.

    The edge makes it, whoever knows a field fills it in, the edge writes the line when the answer has ended.
    """

    request_id: str | None = None
    model: str | None = None
    """A configured or discovered name; leave it None for a name that only the client knows."""
    backend: str | None = None
    outcome: str | None = None
    reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    queue_s: float | None = None
    ttft_s: float | None = None


@dataclass(slots=True)
class Inbound:
    """One request with its body read, decoded and within limits.

    `surface` is a name of `gateway.wire.surfaces`. `headers` has lower-case names and none that carry a credential.
    `received_at` is in seconds on the monotonic clock, when the request's head was complete. `request_id` is the
    caller's own `x-request-id`, if it sent one that is fit to print. `content_type` is that field's value, which holds
    the boundary of a form. `forward` are the fields that engines may be sent, see `forwarded`. `hold` is what it is
    charged for in memory.
    """

    surface: str
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    client: Client
    received_at: float
    request_id: str | None = None
    note: AccessNote = field(default_factory=AccessNote)
    content_type: str = "application/json"
    forward: tuple[tuple[str, str], ...] = ()
    hold: Hold = field(default_factory=Hold, repr=False)
    size: int = field(init=False)
    """Bytes of the body, also after it was let go."""

    def __post_init__(self) -> None:
        self.size = len(self.body)

    def spend(self) -> None:
        """Let the body go, and what was made of it: the answer has begun, and nothing may be tried again."""
        self.body = b""
        self.hold.settles(body=0, copy=0)


_FORWARDED = ("anthropic-version", "anthropic-beta", "openai-beta", "traceparent", "tracestate")


def forwarded(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The fields that a client may send to engines: versions and features of an API, and a trace's place.

    `headers` has lower-case names. A list of what may pass: credentials, cookies, addresses, ids and whatever is
    invented next stay here. A value that is not plain ASCII stays here too.
    """
    return tuple((name, value) for name in _FORWARDED if (value := headers.get(name)) and _plain(value))


def _plain(value: str) -> bool:
    return value.isascii() and value.isprintable()

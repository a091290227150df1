"""How much one client, and all of them together, may send."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EdgeLimits"]


@dataclass(frozen=True, slots=True)
class EdgeLimits:
    """`server.limits`: bytes, seconds and connections.

    `body` bounds a request body as sent and as decoded; `header` one header field and all of them together; `memory`
    the sum of all bodies and whole answers held at once, and of what is made of them. `keep_alive` is how long an idle
    connection is kept, longer than the 60 s of common proxies in front.
    """

    body: int = 64 * 1024 * 1024
    header: int = 32 * 1024
    body_read: float = 60.0
    connections: int = 4096
    memory: int = 2 * 1024 * 1024 * 1024
    keep_alive: float = 75.0

"""What can be wrong with an emulated engine."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

__all__ = ["Fault"]


@dataclass(frozen=True, slots=True)
class Fault:
    """The state of an engine that is not well; the default is health."""

    slow_decode: float = 1.0
    """Decode takes this many times as long."""
    slow_prefill: float = 1.0
    hang: bool = False
    """Requests are accepted and stay silent; /health and /metrics answer."""
    refuse: bool = False
    """The port is closed to new connections, and reset on kept ones; running requests go on."""
    cut_after_tokens: int | None = None
    """Streams that begin now are reset after this many tokens."""
    crash: bool = False
    """All connections are reset, the port is closed, cache and counters are lost."""

    @staticmethod
    def from_json(body: bytes) -> Fault:
        """The fault in the body of an admin request, {} for health; msgspec.MsgspecError where it is no such thing."""
        return msgspec.json.decode(body or b"{}", type=Fault)

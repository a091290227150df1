"""What the configuration needs to know of a model that an engine lists; the fleet's own values have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["Discovered"]


class Discovered(Protocol):
    """A model as discovery found it; numbers that the engine doesn't tell are None. Tokens and bytes."""

    @property
    def id(self) -> str:
        """What the engine calls it."""
        ...

    @property
    def aliases(self) -> Sequence[str]:
        """Other names it answers to."""
        ...

    @property
    def window(self) -> int | None:
        """Tokens one request may use."""
        ...

    @property
    def params(self) -> int | None:
        """Number of weights."""
        ...

    @property
    def size_bytes(self) -> int | None:
        """Size of the weights."""
        ...

    @property
    def surfaces(self) -> frozenset[str] | None:
        """What it may be asked in, where that differs from the engine's others."""
        ...

    @property
    def abilities(self) -> frozenset[str] | None:
        """What it can do, where that differs from the engine's others."""
        ...

    @property
    def default_window(self) -> int | None:
        """Tokens that the engine gives it when nothing says otherwise."""
        ...

    @property
    def kv_bytes_per_token(self) -> float | None:
        """KV cache of one token."""
        ...

"""What a model of one backend's prefix cache must answer; the two cache designs of the field implement it."""

from __future__ import annotations

from typing import Protocol

from gateway.core.prefix.chain import Chain
from gateway.core.prefix.reuse import Match

__all__ = ["Residency"]


class Residency(Protocol):
    """The believed contents of one backend's cache, driven by our own traffic.

    A request goes begin, confirm, end; end without confirm means that it failed before its first token.
    """

    def resize(self, capacity_tokens: int, entries: int) -> None:
        """Set the size of the modelled cache in tokens, and how many index entries this model may use."""
        ...

    def match(self, chain: Chain) -> Match:
        """What is held of this prompt now."""
        ...

    def insert(self, chain: Chain, tokens: int, cached: int | None = None) -> None:
        """Note that this prompt of `tokens` tokens is computed and held, `cached` of them from before (None: guess)."""
        ...

    def begin(self, chain: Chain, tokens: int) -> None:
        """Note that a request with this prompt was sent: its prefix is being computed."""
        ...

    def confirm(self, chain: Chain, cached: int | None = None) -> None:
        """Note that it has its first token, so its prompt is held; `cached` tokens if the engine said so."""
        ...

    def end(self, chain: Chain) -> None:
        """Note that it is over, whatever the outcome."""
        ...

    def advance(self, tokens: int) -> None:
        """Note that the cache took in `tokens` tokens beside our prompts: answers, foreign traffic."""
        ...

    def clear(self) -> None:
        """Forget everything: the engine restarted."""
        ...

    @property
    def entries(self) -> int:
        """Index entries in use."""
        ...

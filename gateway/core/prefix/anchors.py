"""Exact token counts of prompts that came before, found again as the start of longer ones.

An agent's turn resends the whole history. Where an engine has counted the previous turn, only the addition is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.prefix.chain import Chain

__all__ = ["Anchor", "AnchorStore"]


@dataclass(frozen=True, slots=True)
class Anchor:
    """An engine's own count: the first `bytes` bytes of this prompt are `tokens` tokens."""

    tokens: int
    bytes: int


class AnchorStore:
    """Exact counts by anchor hash, in two generations of `capacity / 2`: bounded, least recently learned goes first.

    The chain's salt must hold the model and template: a count is true for one tokenizer only.
    """

    def __init__(self, capacity: int = 32_768) -> None:
        self._limit = max(1, capacity // 2)
        self._young: dict[int, Anchor] = {}
        self._old: dict[int, Anchor] = {}

    def learn(self, chain: Chain, tokens: int) -> None:
        """Remember the prompt tokens an engine reported, if the prompt ends at a message boundary."""
        if not chain.anchors or chain.anchors[-1][1] != chain.total:
            return
        if len(self._young) >= self._limit:
            self._old, self._young = self._young, {}
        self._young[chain.anchors[-1][0]] = Anchor(tokens, chain.total)

    def find(self, chain: Chain) -> Anchor | None:
        """The longest counted start of this prompt among its last message boundaries."""
        for digest, _ in reversed(chain.anchors):
            anchor = self._young.get(digest) or self._old.get(digest)
            if anchor is not None:
                return anchor
        return None

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

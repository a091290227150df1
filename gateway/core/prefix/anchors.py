"""Exact token counts of prompts that came before, found again as the start of longer ones.

An agent's turn resends the whole history. Where an engine has counted the previous turn, only the addition is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.prefix.chain import Chain

__all__ = ["Anchor", "AnchorStore"]


@dataclass(frozen=True, slots=True)
class Anchor:
    """An engine's own count: a prompt's start is `tokens` tokens, and what it answered to it is `answer` tokens.

    `thought` and `past_thought`: our estimate of the reasoning in it, since its last question and before that.
    """

    tokens: int
    answer: int = 0
    thought: float = 0.0
    past_thought: float = 0.0


class AnchorStore:
    """Exact counts by model and anchor hash, in two generations of `capacity / 2`: bounded, the oldest goes first.

    A count is true for one tokenizer and template only, hence the model; tools are the start of the chain itself.
    """

    def __init__(self, capacity: int = 32_768) -> None:
        self._limit = max(1, capacity // 2)
        self._young: dict[tuple[str, int], Anchor] = {}
        self._old: dict[tuple[str, int], Anchor] = {}

    def learn(self, model: str, chain: Chain, anchor: Anchor) -> None:
        """Remember what an engine reported, if the prompt ends at a message boundary."""
        if not chain.anchors or chain.anchors[-1][1] != chain.total:
            return
        if len(self._young) >= self._limit:
            self._old, self._young = self._young, {}
        self._young[model, chain.anchors[-1][0]] = anchor

    def find(self, model: str, chain: Chain) -> tuple[Anchor, int] | None:
        """The longest counted start of this prompt among its last message boundaries, and how many messages follow."""
        for after, (digest, _) in enumerate(reversed(chain.anchors)):
            key = (model, digest)
            anchor = self._young.get(key) or self._old.get(key)
            if anchor is not None:
                return anchor, after
        return None

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

"""Which backend keeps which stored answer: engines keep them in their own memory, and each knows only its own."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

__all__ = ["Kept", "KeptAnswers"]


@dataclass(frozen=True, slots=True)
class Kept:
    """Where an answer is kept, for whom, and the name under which that client knows its model."""

    backend: str
    client: str
    model: str


class KeptAnswers:
    """The latest `most` of them (about 300 bytes each); what is older may still be kept, but nobody knows where."""

    def __init__(self, most: int = 20_000) -> None:
        self._most = most
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def note(self, answer: str, kept: Kept) -> None:
        """A backend has answered, and may keep the answer under this id."""
        self._kept[answer] = kept
        self._kept.move_to_end(answer)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def find(self, answer: str) -> Kept | None:
        """Where it is kept, as far as is known."""
        kept = self._kept.get(answer)
        if kept is not None:
            self._kept.move_to_end(answer)
        return kept

    def forget(self, answer: str) -> None:
        """It was deleted."""
        self._kept.pop(answer, None)

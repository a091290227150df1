"""Single-flight for prefixes: which long prompts are being read right now, and when each of them should be there.

Engines share blocks once they are computed, not before. A request whose prompt starts like one that is being read (a
burst of agents on one new context) had better wait for that one, its leader, than read the same start once more.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.prefix.chain import Chain

__all__ = ["LEAST_AWAITED", "Lead", "Leaders"]

LEAST_AWAITED = 2048
"""Tokens that must be left to compute of a prompt before it leads: less is read in one step of most engines."""
_UNSEEN_GRACE = 0.5
"""Part of the predicted seconds that a first token which nobody sees may be late."""


@dataclass(frozen=True, slots=True)
class Lead:
    """A prompt that is being read, `sent` and expected to be `ready` then."""

    chain: Chain
    sent: float
    ready: float
    seen: bool
    """Whether its first token will be noticed."""

    @property
    def over(self) -> float:
        """When it counts as read, where its first token can't be seen."""
        return self.ready + _UNSEEN_GRACE * (self.ready - self.sent)


class Leaders:
    """The prompts before their first token, by cache (keys as in PrefixIndex). Seconds on the monotonic clock.

    Few at any time: backends take only some seconds of prefill each, and short prompts don't lead.
    """

    __slots__ = ("_by_holder", "_expected", "_unseen", "version")

    def __init__(self) -> None:
        self.version = 0
        """Grows whenever `ahead` could answer differently."""
        self._by_holder: dict[str, dict[str, Lead]] = {}
        self._expected: list[tuple[str, str]] = []
        self._unseen: dict[str, tuple[str, Lead]] = {}

    def begin(self, holder: str, lease: str, chain: Chain, sent: float, ready: float, *, seen: bool = True) -> None:
        """A prompt was sent at `sent` and should be read at `ready`; `seen`: its first token will be noticed."""
        lead = Lead(chain, sent, ready, seen)
        self._by_holder.setdefault(holder, {})[lease] = lead
        if not seen:
            self._unseen[lease] = (holder, lead)
        self.version += 1

    def expect(self, holder: str, request: str, chain: Chain, now: float, ready: float) -> None:
        """A prompt is about to be sent; `settled` ends the expectation, when it was sent or not."""
        self._by_holder.setdefault(holder, {})[request] = Lead(chain, now, ready, seen=True)
        self._expected.append((holder, request))
        self.version += 1

    def settled(self) -> None:
        """All that was expected has been decided."""
        for holder, request in self._expected:
            self._drop(holder, request)
        self._expected.clear()

    def end(self, holder: str, lease: str) -> None:
        """It has its first token, or never will."""
        self._unseen.pop(lease, None)
        self._drop(holder, lease)

    def read_unseen(self, now: float) -> list[tuple[str, Chain]]:
        """Caches and prompts that must have been read by now, though their first tokens can't be seen; told once."""
        if not self._unseen:
            return []
        read = [(holder, lease, lead.chain) for lease, (holder, lead) in self._unseen.items() if lead.over <= now]
        for holder, lease, _ in read:
            self.end(holder, lease)
        return [(holder, chain) for holder, _, chain in read]

    def ahead(self, holder: str, chain: Chain) -> tuple[int, Lead | None]:
        """Bytes of this prompt that are being read there, and by whom; (0, None) for none.

        Of several leaders the one that shares most, and of equals the first that is done.
        """
        most, leader = 0, None
        for lead in self._by_holder.get(holder, {}).values():
            shared = chain.common_bytes(lead.chain)
            if shared > most or (leader is not None and shared == most and lead.ready < leader.ready):
                most, leader = shared, lead
        return most, leader

    def forget(self, holder: str) -> None:
        """Forget a cache: its engine restarted, or is gone."""
        for lease in self._by_holder.pop(holder, {}):
            self._unseen.pop(lease, None)
            self.version += 1

    def __len__(self) -> int:
        return sum(map(len, self._by_holder.values()))

    def _drop(self, holder: str, lease: str) -> None:
        leads = self._by_holder.get(holder)
        if leads is not None and leads.pop(lease, None) is not None:
            if not leads:
                del self._by_holder[holder]
            self.version += 1

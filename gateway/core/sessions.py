"""Conversations: where each was served last, whether its prompts go on from each other, and when it comes back.

A conversation is known by its client's own word for it, if there is one, and by its opening. It is a hint: what a
backend holds is for the prefix chain to say.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.prefix.chain import Chain
from gateway.core.request import Request
from gateway.core.return_times import FORGOTTEN_AFTER, ReturnTimes

__all__ = ["Divergence", "Session", "Sessions"]

_MOST = 8192
"""Conversations that are remembered; of longer ones fewer, see `_HASHES`."""
_HASHES = 400_000
"""Hashes of their chains together: with the numbers they are about 25 MB."""
_GOES_ON = 0.75
"""Part of the last prompt that the next one must share to go on from it."""

_Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where the prompts of a conversation part ways although the second goes on from the first.

    `start` and `end`: the bytes of the rendered prompt (tools first, then messages) between which the first difference
    lies. `message`: which message that is in, counted from 0; None: in the list of tools, or after the first sixteen.
    `turns`: how often in a row. `lost`: bytes after it that were the same conversation, and could have been cached.
    """

    start: int
    end: int
    message: int | None
    turns: int
    lost: int


@dataclass(slots=True, eq=False)
class Session:
    """One conversation after its last request, which was sent to `backend`. Seconds on the monotonic clock."""

    key: _Key
    model: str
    backend: str
    chain: Chain
    sent: float
    over: float | None = None
    """When its answer ended; None while it runs."""
    calls: bool = False
    """It ended with calls of tools."""
    turns: int = 1
    divergence: Divergence | None = None


class Sessions:
    """Bounded: the conversation that was idle longest goes first."""

    def __init__(self) -> None:
        self.returns = ReturnTimes()
        self._sessions: dict[_Key, Session] = {}
        self._named: dict[tuple[str, str], _Key] = {}
        self._by_chain: dict[int, Session] = {}
        self._hashes = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def home(self, client: str, hint: str | None, thread: int) -> str | None:
        """The backend that served the last request of a conversation whose client names it; None: it is not known."""
        if hint is None:
            return None
        found = self._sessions.get((client, hint, thread))
        if found is None:
            key = self._named.get((client, hint))
            found = self._sessions.get(key) if key is not None else None
        return found.backend if found is not None else None

    def sent(self, request: Request, chain: Chain, backend: str, now: float) -> Divergence | None:
        """Note that a request was sent there; where its prompt parts from the last one of its conversation, if so."""
        key = (request.client, request.session or "", request.thread)
        before = self._sessions.get(key)
        if before is None:
            self._keep(Session(key, request.model, backend, chain, now))
            return None
        if request.attempt or before.chain.whole == chain.whole:  # the same prompt again
            self._replace(before, chain, backend, now)
            return before.divergence
        if before.over is not None:
            self.returns.came_back(request.client, now - before.over, calls=before.calls)
        before.divergence = _parting(before, chain)
        before.turns += 1
        before.model = request.model
        self._replace(before, chain, backend, now)
        return before.divergence

    def ended(self, chain: Chain, now: float, *, calls: bool) -> None:
        """Note that the answer to the request with this very chain is over; `calls`: it calls tools."""
        found = self._by_chain.get(id(chain))
        if found is not None:
            found.over, found.calls = now, calls

    def comes_back(self, chain: Chain, now: float) -> float:
        """The probability that the conversation whose last prompt this very chain is goes on."""
        found = self._by_chain.get(id(chain))
        if found is None or found.chain is not chain:
            return 0.0
        if found.over is None:
            return 1.0
        return self.returns.probability(found.key[0], now - found.over, calls=found.calls)

    def of(self, chain: Chain) -> Session | None:
        """The conversation whose last prompt this very chain is."""
        return self._by_chain.get(id(chain))

    def diverging(self, turns: int = 2) -> list[Session]:
        """The conversations whose last prompts each parted from the one before, so often in a row; latest last."""
        found = [each for each in self._sessions.values() if each.divergence and each.divergence.turns >= turns]
        return sorted(found, key=lambda each: each.sent)

    def remove(self, backend: str) -> None:
        """Forget where conversations were that lived on a backend which is gone."""
        for key in [key for key, each in self._sessions.items() if each.backend == backend]:
            self._drop(key)

    def _keep(self, session: Session) -> None:
        self._sessions[session.key] = session
        self._by_chain[id(session.chain)] = session
        self._hashes += len(session.chain.hashes)
        client, hint, _ = session.key
        if hint:
            self._named[client, hint] = session.key
        while len(self._sessions) > _MOST or (self._hashes > _HASHES and len(self._sessions) > 1):
            oldest = next(iter(self._sessions.values()))
            if oldest.over is not None:
                self.returns.stayed_away(oldest.key[0], calls=oldest.calls)
            self._drop(oldest.key)
        self._sweep(session.sent)

    def _replace(self, session: Session, chain: Chain, backend: str, now: float) -> None:
        """Move it to the end of the order, with its new prompt."""
        self._drop(session.key)
        session.chain, session.backend, session.sent, session.over = chain, backend, now, None
        self._keep(session)

    def _drop(self, key: _Key) -> None:
        session = self._sessions.pop(key)
        self._by_chain.pop(id(session.chain), None)
        self._hashes -= len(session.chain.hashes)
        if self._named.get(key[:2]) == key:
            del self._named[key[:2]]

    def _sweep(self, now: float) -> None:
        """Let two go at most that have been idle for so long that they are over: as many as come, and more."""
        for _ in range(2):
            oldest = next(iter(self._sessions.values()))
            if now - oldest.sent < 2 * FORGOTTEN_AFTER:
                return
            if oldest.over is not None:
                self.returns.stayed_away(oldest.key[0], calls=oldest.calls)
            self._drop(oldest.key)


def _parting(before: Session, chain: Chain) -> Divergence | None:
    old = before.chain
    shared = chain.common_bytes(old)
    if shared >= _GOES_ON * old.indexed or chain.total < old.total:
        return None
    block = chain.common_blocks(old)
    end = chain.ends[block] if block < len(chain.ends) else chain.total
    turns = before.divergence.turns + 1 if before.divergence is not None else 1
    return Divergence(shared, end, _message(chain, old, shared), turns, old.total - shared)


def _message(chain: Chain, old: Chain, shared: int) -> int | None:
    """The first message that ends after what is shared; in blocks of 512 bytes and more it may be the one before."""
    for number, (mine, theirs) in enumerate(zip(chain.outline, old.outline, strict=False)):
        if min(mine, theirs) > shared:
            return number
    return None

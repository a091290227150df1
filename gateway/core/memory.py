"""One account of the memory that large bodies and answers take, whoever holds them. Bytes; nothing waits here.

A large body or answer is also worked on: measured, translated, put together. That is done one piece after another, in
a process that is gone afterwards, so room is set aside for one such process, as large as the largest piece needs.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["LARGE", "WORK", "Hold", "MemoryBudget"]

LARGE = 1024 * 1024
"""Bytes from which a body or an answer is large. A small one never waits, and may use what large ones leave."""
WORK = 6
"""What the work on a piece takes, in its own lengths: 3 for plain text, 5 to 6 for pictures in a translation and for
text in which one character is beyond the 16-bit plane, and so all of them take four bytes in Python."""
_FOR_SMALL = 8
"""Part of the budget that large pieces leave to small ones."""


class MemoryBudget:
    """The sum of what is held, under `limit`.

    Large pieces leave a part to small ones, which may use it whatever large ones take. One large piece is let in even
    where it is more than the limit allows, when there is no other: a limit below what one largest body takes would else
    refuse it for ever.
    """

    __slots__ = ("_large", "_waiting", "_work", "held", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._large: dict[Hold, int] = {}  # and all that each holds
        self._work: dict[Hold, int] = {}  # pieces that are yet to be worked on
        self._waiting: dict[object, Callable[[], None]] = {}

    def hold(self) -> Hold:
        """A share for one request; a context manager that gives everything back."""
        return Hold(self)

    def has_room(self, hold: Hold, more: int, piece: int, work: int) -> bool:
        """Whether `hold` may grow by `more` bytes.

        Its largest part is then `piece` bytes, and that which is yet to be worked on `work`.
        """
        if piece <= LARGE:
            return self.held + more <= self.limit or self._small + more <= self.limit // _FOR_SMALL
        if not self._large.keys() - {hold}:
            return True
        work = WORK * max(work, *self._work.values(), 0)
        return self.held + more + work <= self.limit - self.limit // _FOR_SMALL

    def others_wait(self, key: object) -> bool:
        """Whether somebody waits for room, and `key` does not."""
        return bool(self._waiting) and key not in self._waiting

    @property
    def _small(self) -> int:
        return self.held - sum(self._large.values())

    def when_less(self, key: object, call: Callable[[], None]) -> None:
        """Call when something is given back, again and again, the longest waiting first, until `forget`."""
        self._waiting[key] = call

    def forget(self, key: object) -> None:
        """No more calls for this key."""
        self._waiting.pop(key, None)

    def account(self, hold: Hold, change: int, piece: int, work: int) -> None:
        """Note that `hold` grew or shrank; its largest part now, and what of it is yet to be worked on."""
        less = change < 0 or work < self._work.get(hold, 0)
        self.held += change
        if piece > LARGE:
            self._large[hold] = hold.bytes
        else:
            self._large.pop(hold, None)
        if work:
            self._work[hold] = work
        else:
            self._work.pop(hold, None)
        if less:
            for call in list(self._waiting.values()):
                call()


class Hold:
    """One request's share, in parts: its body, a copy of that in translation, its answer."""

    __slots__ = ("_parts", "_work", "budget")

    def __init__(self, budget: MemoryBudget | None = None) -> None:
        self.budget = budget if budget is not None else MemoryBudget(1 << 62)
        """The account that it is a share of."""
        self._parts: dict[str, int] = {}
        self._work = 0

    @property
    def bytes(self) -> int:
        """All that is held."""
        return sum(self._parts.values())

    def takes(self, **parts: int) -> bool:
        """Hold so many bytes as these parts from now on; False, and nothing changed, where there is no room for more.

        The largest of them is to be worked on, until `worked`.
        """
        piece = max(parts.values())
        return self._takes(parts, max(self._work, piece) if piece > LARGE else self._work)

    def keeps(self, **parts: int) -> bool:
        """The same for what nobody works on: what is kept of a stream so as to say it again."""
        return self._takes(parts, self._work)

    def settles(self, **parts: int) -> None:
        """Hold so many bytes as these parts, room or not: what is there already is better counted than not."""
        self._change(parts, self._work)

    def worked(self) -> None:
        """Nothing that is held now is to be worked on any more."""
        self._change({}, 0)

    def release(self) -> None:
        """Give everything back."""
        self._change(dict.fromkeys(self._parts, 0), 0)

    def _takes(self, parts: dict[str, int], work: int) -> bool:
        more = sum(parts.values()) - sum(self._parts.get(part, 0) for part in parts)
        if more > 0 and not self.budget.has_room(self, more, max(parts.values()), work):
            return False
        self._change(parts, work)
        return True

    def _change(self, parts: dict[str, int], work: int) -> None:
        before = self.bytes
        self._parts |= parts
        self._work = work
        self.budget.account(self, self.bytes - before, max(self._parts.values(), default=0), work)

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

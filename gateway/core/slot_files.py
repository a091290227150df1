"""Slots of llama.cpp's server kept on its disk: saved before they are given away, and restored when their turn comes.

Names are used again, the one of least use first: the server has no way to delete a file.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.prefix.chain import Chain

__all__ = ["SlotFiles", "Swap"]

_FILES = 16
"""Files of one cache."""
_LEAST = 512
"""Tokens; less is read again as fast."""
_LIVE = 0.25
"""Probability of coming back from which a conversation is worth a file."""
_GAIN = 1.5
"""How many times longer reading a prompt again must take than saving and restoring it."""
_LEARN = 0.2


@dataclass(slots=True, eq=False)
class _File:
    name: str
    chain: Chain | None = None
    tokens: int = 0
    planned: int = 0
    """Swaps that are under way with it."""
    used: int = 0


@dataclass(frozen=True, slots=True)
class Swap:
    """What to do with a slot before a request is sent to it: `save` what it holds, then `restore`."""

    slot: int
    save: _File | None
    saved: Chain | None
    saved_tokens: int
    restore: _File | None


class SlotFiles:
    """The files of all caches, by holder as in PrefixIndex. Tokens and seconds."""

    def __init__(self) -> None:
        self._files: dict[str, list[_File]] = {}
        self._per_token: dict[str, float] = {}
        self._uses = 0
        self.restored_tokens = 0
        self.restores = 0

    def plan(
        self,
        holder: str,
        slot: int,
        chain: Chain,
        *,
        held: int,
        loses: tuple[Chain, int] | None,
        comes_back: float,
        seconds_a_token: float,
    ) -> Swap | None:
        """What is worth doing before a prompt is read in `slot`, where `held` bytes of it are already.

        `loses`: the prompt that loses its slot, and its tokens; `comes_back` the probability that it goes on;
        `seconds_a_token` to read a prompt.
        """
        if self._per_token.get(holder, 0.0) * _GAIN > seconds_a_token:
            return None
        files = self._files.setdefault(holder, [_File(f"kvgate-{number:02}.bin") for number in range(_FILES)])
        restore = self._longest(files, chain, held)
        save: _File | None = None
        worth = loses is not None and loses[1] >= _LEAST and comes_back >= _LIVE
        if loses is not None and worth and all(file.chain is not loses[0] for file in files):
            save = min((file for file in files if not file.planned and file is not restore), key=_use, default=None)
        if restore is None and save is None:
            return None
        for file in (restore, save):
            if file is not None:
                self._uses += 1
                file.used, file.planned = self._uses, file.planned + 1
        if save is not None:
            save.chain = None
        lost, tokens = loses if save is not None and loses is not None else (None, 0)
        return Swap(slot, save, lost, tokens, restore)

    def done(self, holder: str, swap: Swap, *, saved: bool, restored: bool, seconds: float) -> None:
        """It was carried out, as far as that went, in so many seconds altogether."""
        moved = 0
        if swap.save is not None:
            swap.save.planned -= 1
            if saved:
                swap.save.chain, swap.save.tokens = swap.saved, swap.saved_tokens
                moved += swap.saved_tokens
        if swap.restore is not None:
            swap.restore.planned -= 1
            if restored:
                moved += swap.restore.tokens
                self.restores += 1
                self.restored_tokens += swap.restore.tokens
            else:
                swap.restore.chain = None
        if moved:
            # A conversation is saved and restored: each of them costs about the same.
            both = 2.0 * seconds / moved
            before = self._per_token.get(holder, both)
            self._per_token[holder] = before + _LEARN * (both - before)

    def forget(self, holder: str) -> None:
        """The backend is gone."""
        self._files.pop(holder, None)

    def _longest(self, files: list[_File], chain: Chain, held: int) -> _File | None:
        best, most = None, held
        for file in files:
            if file.chain is None:
                continue
            shared = chain.common_bytes(file.chain)
            density = file.tokens / file.chain.total if file.chain.total else 0.0
            if shared > most and (shared - held) * density >= _LEAST:
                best, most = file, shared
        return best


def _use(file: _File) -> tuple[bool, int]:
    return file.chain is not None, file.used

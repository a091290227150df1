"""Who holds what: the believed prefix caches of all backends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gateway.core.prefix.block_events import BlockMirror
from gateway.core.prefix.block_residency import BlockResidency
from gateway.core.prefix.chain import Chain
from gateway.core.prefix.residency import Residency
from gateway.core.prefix.reuse import Match, Segment
from gateway.core.prefix.slot_residency import SlotResidency, Worth

__all__ = ["DEFAULT_CAPACITY_TOKENS", "PrefixIndex"]

DEFAULT_CAPACITY_TOKENS = 65_536
"""Cache size of a backend that hasn't told its own."""


class PrefixIndex:
    """The prefix caches of all backends, as our own traffic fills them; `entries` bounds them all together.

    Only what a backend was told to compute is believed to be there, and how firmly is for PrefixTrust to say. A backend
    that serves several models keys each as its own, e.g. by (name, model) joined: their caches share nothing.
    """

    def __init__(self, entries: int = 262_144, worth: Worth = lambda _: 1.0) -> None:
        self._entries = entries
        self._worth = worth
        self._caches: dict[str, Residency] = {}
        self._sizes: dict[str, tuple[int, int | None, bool]] = {}
        self._versions: dict[str, int] = {}
        self._mirrors: dict[str, BlockMirror] = {}
        self._version = 0

    @property
    def version(self) -> int:
        """Grows whenever a match could come out differently than before, on any backend."""
        return self._version

    def version_of(self, backend: str) -> int:
        """The same for one backend: as long as it stays, a match kept from before still holds."""
        return self._versions.get(backend, 0)

    @property
    def entries(self) -> int:
        """Index entries in use over all backends."""
        return sum(cache.entries for cache in self._caches.values())

    def register(
        self, backend: str, capacity_tokens: int, sequences: int | None = None, *, chosen: bool = False
    ) -> None:
        """Tell a backend's cache size in tokens, and `sequences` if it keeps whole sequences (slots), not blocks.

        `chosen`: it is told which slot to take. Calling it again with other figures resizes; a change of kind starts
        over.
        """
        size = (capacity_tokens, sequences, chosen)
        if self._sizes.get(backend) == size:
            return
        if backend not in self._caches or self._sizes[backend][1:] != size[1:]:
            if sequences is not None:
                cache = SlotResidency(capacity_tokens, sequences, chosen=chosen, worth=self._worth)
                self._caches[backend] = cache
            else:
                self._caches[backend] = BlockResidency(capacity_tokens, self._entries)
        self._sizes[backend] = size
        share = self._entries // len(self._caches)
        for name, one in self._caches.items():
            one.resize(self._sizes[name][0], share)
        self._changed(backend)

    def match(self, chain: Chain, backends: Iterable[str]) -> dict[str, Match]:
        """What each of these backends holds of a prompt; about 5 µs a backend."""
        nothing = Match(chain.total)
        caches = self._caches
        found = {name: caches[name].match(chain) if name in caches else nothing for name in backends}
        for name, mirror in self._mirrors.items():
            if name in found:
                found[name] = _exact(found[name], mirror.resident(chain))
        return found

    def mirror(self, backend: str) -> BlockMirror:
        """What that backend's engine itself says of its blocks; from the first call on it counts."""
        found = self._mirrors.get(backend)
        if found is None:
            found = self._mirrors[backend] = BlockMirror()
        return found

    def mirrored(self, backend: str) -> BlockMirror | None:
        """The same, if there is one."""
        return self._mirrors.get(backend)

    def told(self, backend: str) -> None:
        """An engine said something of its blocks."""
        self._changed(backend)

    def depth(self, backend: str, chain: Chain) -> int:
        """Bytes of a prompt that this backend is believed to hold."""
        cache = self._caches.get(backend)
        return cache.match(chain).bytes if cache is not None else 0

    def insert(self, backend: str, chain: Chain, tokens: int, cached: int | None = None) -> None:
        """Note that a prompt of `tokens` tokens is held there (begin and confirm at once; another gateway's report)."""
        self._cache(backend).insert(chain, tokens, cached)
        self._changed(backend)

    def begin(self, backend: str, chain: Chain, tokens: int) -> None:
        """Note that a prompt of `tokens` tokens was sent there; it counts as pending until its first token."""
        self._cache(backend).begin(chain, tokens)
        self._changed(backend)

    def slot_of(self, backend: str, chain: Chain) -> int | None:
        """The slot that a running request was given there; None where caches have no slots, or none was free."""
        cache = self._caches.get(backend)
        return cache.slot_of(chain) if isinstance(cache, SlotResidency) else None

    def confirm(self, backend: str, chain: Chain, cached_tokens: int | None = None) -> None:
        """Note the first token of a prompt that was begun; `cached_tokens` if the engine already told."""
        cache = self._caches.get(backend)
        if cache is not None:
            cache.confirm(chain, cached_tokens)
            self._changed(backend)

    def end(self, backend: str, chain: Chain, output_tokens: int = 0) -> None:
        """Note that a request is over; its answer of `output_tokens` took room in the cache too."""
        cache = self._caches.get(backend)
        if cache is not None:
            cache.end(chain)
            cache.advance(output_tokens)
            self._changed(backend)

    def advance(self, backend: str, tokens: int) -> None:
        """Note foreign traffic: tokens that the backend's cache took in beside ours."""
        cache = self._caches.get(backend)
        if cache is not None:
            cache.advance(tokens)
            self._changed(backend)

    def forget(self, backend: str) -> None:
        """Forget a backend's cache: its engine restarted."""
        cache, mirror = self._caches.get(backend), self._mirrors.get(backend)
        if mirror is not None:
            mirror.forget()
        if cache is not None:
            cache.clear()
            self._changed(backend)

    def remove(self, backend: str) -> None:
        """Forget the backend itself."""
        self._mirrors.pop(backend, None)
        if self._caches.pop(backend, None) is not None:
            del self._sizes[backend]
            self._changed(backend)

    def _cache(self, backend: str) -> Residency:
        if backend not in self._caches:
            self.register(backend, DEFAULT_CAPACITY_TOKENS)
        return self._caches[backend]

    def _changed(self, backend: str) -> None:
        self._version += 1
        self._versions[backend] = self._version


def _exact(match: Match, told: tuple[int, bool] | None) -> Match:
    """The match as far as the engine's own word goes; what it says nothing of stays believed."""
    if told is None or (told[0] < match.bytes and not told[1]):
        return match
    there, _ = told
    segments = (Segment(there, 0),) if there else ()
    return replace(match, bytes=there, segments=segments, pinned=min(match.pinned, there))

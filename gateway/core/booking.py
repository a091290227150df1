"""What the ledger notes of one lease."""

from __future__ import annotations

from gateway.core.footprint import Footprint

__all__ = ["Booking"]


class Booking:
    """One open lease: what it holds and how far it has come. Tokens; `kv` and `output` as reserved."""

    __slots__ = (
        "_filled", "_spare", "backend", "ceiling", "closed_at", "denied", "entered_at", "generated", "id", "kv",
        "linger_until", "others", "output", "prompt", "sequences",
    )  # fmt: skip

    def __init__(self, id: str, backend: str, footprint: Footprint, now: float = 0.0) -> None:
        self.id = id
        self.backend = backend
        self.kv = footprint.kv
        self.output = footprint.output
        self.prompt = footprint.prompt
        self.sequences = footprint.sequences
        self.ceiling = footprint.ceiling
        self.generated = 0
        self.denied = False
        self.entered_at = now
        self.closed_at = now
        self.linger_until = 0.0
        self.others = 0
        spare = footprint.prompt_high - footprint.prompt
        self._spare = spare
        # A reservation that was cut at the end of the pool holds the prompt all the same.
        self._filled = max(self.kv - self.output - spare, min(footprint.prompt - footprint.shared, self.kv))

    @property
    def context(self) -> int:
        """Tokens that each decode step reads for it, over all its sequences."""
        return self.prompt * self.sequences + self.generated

    @property
    def held(self) -> int:
        """Tokens of KV cache that it takes once its prompt was read: what of its reservation is filled by now.

        Without those that the prompt may be longer than it is taken for, and a prefix that others hold.
        """
        return self._filled + self.generated

    def recount(self, prompt: int, kv: int) -> None:
        """The engine counted the prompt, for which so many more tokens are reserved (negative: fewer)."""
        self.kv += kv
        if self.ceiling:
            self.ceiling += kv
        self._filled = max(0, self._filled + self._spare + kv)
        self.prompt, self._spare = prompt, 0

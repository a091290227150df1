"""A request inside an engine."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.sim.text import Text

__all__ = ["Sequence", "SimRequest"]


@dataclass(frozen=True, slots=True)
class SimRequest:
    """What an engine is asked to do; the answer's length is known beforehand, to the simulation only."""

    id: str
    text: Text
    prompt_tokens: int
    output_tokens: int
    finish_reason: str = "stop"
    """Why it ends after `output_tokens`: "stop" or "length"."""


@dataclass(slots=True, eq=False)
class Sequence:
    """Progress of one request: how much is computed and which blocks hold it."""

    request: SimRequest
    submitted_at: float
    admitted_at: float | None = None
    total: int = 0
    """Tokens known so far: the prompt and what was generated."""
    computed: int = 0
    """Tokens whose keys and values are in the cache; total - computed are to be computed."""
    cached: int = 0
    """Prompt tokens found in the prefix cache at the first admission."""
    preemptions: int = 0
    blocks: list[int] = field(default_factory=list)
    state_blocks: list[int] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)
    """Chain keys of the leading full blocks."""
    registered: int = 0
    """Leading blocks whose content the cache knows."""

    def __post_init__(self) -> None:
        self.total = self.request.prompt_tokens

    @property
    def generated(self) -> int:
        """Tokens of the answer so far."""
        return self.total - self.request.prompt_tokens

    @property
    def finished(self) -> bool:
        """True when the whole answer is there."""
        return self.generated >= self.request.output_tokens

    @property
    def decoding(self) -> bool:
        """True when the next iteration computes one token of the answer, nothing of the prompt."""
        return self.total - self.computed == 1 and self.computed >= self.request.prompt_tokens

    def keys_up_to(self, blocks: int, block_size: int) -> list[int]:
        """Chain keys of the first `blocks` blocks, computed once."""
        keys = self.keys
        key = self.request.text.key
        parent = keys[-1] if keys else 0
        for at in range(len(keys), blocks):
            parent = key(at * block_size, (at + 1) * block_size, parent)
            keys.append(parent)
        return keys if len(keys) == blocks else keys[:blocks]

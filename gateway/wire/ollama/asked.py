"""What the answer's translation must know of an Ollama request."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Asked"]


@dataclass(frozen=True, slots=True)
class Asked:
    """generate: the answer is of /api/generate, else of /api/chat."""

    generate: bool = False

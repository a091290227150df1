"""An engine that silently threw the front of a prompt away, noticed by its own count.

Some engines answer 200 with a plausible answer to a prompt that lost its system text and its tools (Ollama beyond its
`num_ctx`, llama.cpp with context shift).
"""

from __future__ import annotations

from gateway.core.lease import Ended, Lease

__all__ = ["was_cut"]

_SHARES = {"A": 0.5, "B": 0.9, "C": 0.95}
"""Part of what was expected under which a count tells of a loss, by how well the prompt was known beforehand."""
_FLOOR = 2048
"""Tokens below which an estimate is too rough to say so, and a window hardly that small."""


def was_cut(lease: Lease, ended: Ended) -> bool:
    """Say whether the engine counted far fewer tokens in this prompt than it has.

    Such a count must teach nothing about tokens. Prompts with images and the like are left out: what those cost is not
    known well enough.
    """
    footprint = lease.decision.footprint
    if footprint is None or not ended.prompt_tokens or not ended.text_only or footprint.prompt < _FLOOR:
        return False
    return ended.prompt_tokens < _SHARES.get(footprint.tier, 0.5) * footprint.prompt

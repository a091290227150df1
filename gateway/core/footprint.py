"""The footprint: what one request would hold and cost on one backend."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Footprint"]


class Footprint(NamedTuple):
    """Tokens (engine tokens of that backend) and bytes that one request needs there.

    `prompt` best guess, `prompt_high` safe side; `cached` expected from the prefix cache; `uncached` = prompt -
    cached, to be prefilled; `output` reserved for all n choices, `output_mean` expected for one; `max_tokens` what
    may be sent upstream so that prompt and output fit the window (None: as the client sent it). `kv` = tokens to
    reserve (whole blocks); `kv_bytes` for reports. `shared`: tokens of the prompt that are left out of `kv`, since a
    running request holds them. `ceiling`: tokens that `kv` may grow to, since neither a window nor the output limit
    lets the request hold more (0: not bounded).

    A named tuple, since every decision makes one for each backend and they are made three times as fast.
    """

    prompt: int
    prompt_high: int
    cached: int
    uncached: int
    output: int
    output_mean: int
    max_tokens: int | None
    kv: int
    kv_bytes: int
    sequences: int = 1
    tier: str = "A"
    shared: int = 0
    ceiling: int = 0

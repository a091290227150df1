"""Recorded requests as traffic for emulated engines: lengths and shared prefixes as they were, arrivals stretched."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

from xxhash import xxh3_64_intdigest

from gateway.sim.events import Arrival
from gateway.sim.sequence import SimRequest
from gateway.sim.text import SegmentText
from gateway.sim.trace_file import TraceRow

__all__ = ["played", "rate_of", "segment"]

BLOCK = 512
"""Tokens that one hash id stands for."""
BURST_S = 3.0
"""Mooncake's arrivals are sampled in batches of so many seconds, over which they are spread again."""


def segment(rows: Sequence[TraceRow], start: int, count: int) -> list[TraceRow]:
    """`count` rows from number `start` on, as if the trace began anew at its end; at most all of them."""
    count = min(count, len(rows))
    length = rows[-1].at_s - rows[0].at_s + BURST_S
    chosen = []
    for at in range(start, start + count):
        row, cycle = rows[at % len(rows)], at // len(rows)
        chosen.append((row.at_s + cycle * length, row))
    first = chosen[0][0]
    return [
        TraceRow(
            at - first, row.prompt, row.output, row.blocks, row.session, row.shared, row.model, row.client, row.klass,
            row.line,
        )
        for at, row in chosen
    ]  # fmt: skip


def rate_of(rows: Sequence[TraceRow]) -> float:
    """Requests a second as they came; 0 where they came at one moment."""
    span = rows[-1].at_s - rows[0].at_s
    return (len(rows) - 1) / span if span > 0.0 else 0.0


def played(
    rows: Sequence[TraceRow], rate: float, span_s: float, *, longest: int, seed: int = 1, patience_s: float = 0.0
) -> list[Arrival]:
    """The trace as it comes at `rate` requests a second for `span_s` seconds; it starts over when it is at its end.

    Requests of more than `longest` tokens, which no engine holds, are left out; ValueError where none is left. Bursts
    stay, but for those that come of sampling. `patience_s`: seconds after which clients leave; 0: they never do.
    Ids are t0, t1 ... in the order of the rows played, and equal for equal rows, whatever the seed.
    """
    fitting = [row for row in rows if row.prompt + row.output <= longest]
    if not fitting:
        raise ValueError(f"no request of at most {longest} tokens")
    chance = random.Random(seed)
    sampled = sum(row.at_s == other.at_s for row, other in pairwise(fitting)) > len(fitting) / 4
    count = round(rate * span_s)
    turns = [fitting[at % len(fitting)] for at in range(count)]
    length = fitting[-1].at_s - fitting[0].at_s + BURST_S
    moments = [
        row.at_s - fitting[0].at_s + (at // len(fitting)) * length + (chance.uniform(0.0, BURST_S) if sampled else 0.0)
        for at, row in enumerate(turns)
    ]
    stretch = span_s / max(max(moments, default=0.0), 1e-9)
    arrivals = [
        Arrival(
            moment * stretch,
            _request(f"t{at}", row, at // len(fitting), at),
            session=row.session,
            **({"patience_s": patience_s} if patience_s else {}),
        )
        for at, (moment, row) in enumerate(zip(moments, turns, strict=True))
    ]
    return sorted(arrivals, key=lambda each: each.at_s)


def _request(ident: str, row: TraceRow, cycle: int, number: int) -> SimRequest:
    """Text of its own but for what it shares with others of the same pass through the trace."""
    own = (number + 1) << 40
    segments = []
    if row.blocks:
        left = row.prompt
        for block in row.blocks:
            segments.append(((cycle << 32) + block, min(BLOCK, left)))
            left -= BLOCK
    else:
        shared = min(row.shared, row.prompt)
        if shared:
            whose = f"{cycle} {row.session or row.client} {row.model}".encode()
            segments.append(((1 << 62) | xxh3_64_intdigest(whose) >> 3, shared))
        if shared < row.prompt:
            segments.append((own, row.prompt - shared))
    return SimRequest(ident, SegmentText([*segments, (own + 1, row.output)]), row.prompt, row.output)

"""Recorded requests as traffic for emulated engines: lengths and shared prefixes as they were, arrivals stretched.

A trace is a CSV or JSONL file with `timestamp_ms`, `input_tokens` and `output_tokens`; JSONL rows may have `hash_ids`,
one for every 512 tokens of the prompt, equal where the text up to there is the same.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from gateway.sim.events import Arrival
from gateway.sim.sequence import SimRequest
from gateway.sim.text import SegmentText

__all__ = ["TRACES", "TraceRow", "load_trace", "played"]

TRACES = Path(__file__).parents[1] / "recordings" / "traces"
BLOCK = 512
"""Tokens that one hash id stands for."""
BURST_S = 3.0
"""Mooncake's arrivals are sampled in batches of so many seconds, over which they are spread again."""


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One request: seconds from the first, tokens, and the ids of the blocks of its prompt, if they are known."""

    at_s: float
    prompt: int
    output: int
    blocks: tuple[int, ...] = ()


def load_trace(path: Path) -> list[TraceRow]:
    """The rows of a trace, in order of arrival; KeyError or ValueError where it is none."""
    with path.open(encoding="utf-8") as lines:
        raw = [json.loads(line) for line in lines] if path.suffix == ".jsonl" else list(csv.DictReader(lines))
    rows = [
        TraceRow(
            float(row["timestamp_ms"]) / 1000.0,
            max(1, int(row["input_tokens"])),
            max(1, int(row["output_tokens"])),
            tuple(row.get("hash_ids") or ()),
        )
        for row in raw
    ]
    return sorted(rows, key=lambda row: row.at_s)


def played(rows: Sequence[TraceRow], rate: float, span_s: float, *, longest: int, seed: int = 1) -> list[Arrival]:
    """The trace as it comes at `rate` requests a second for `span_s` seconds; it starts over when it is at its end.

    Requests of more than `longest` tokens, which no engine holds, are left out. Bursts stay, but for those that come
    of sampling.
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
        Arrival(moment * stretch, _request(f"t{at}", row, at // len(fitting), at))
        for at, (moment, row) in enumerate(zip(moments, turns, strict=True))
    ]
    return sorted(arrivals, key=lambda each: each.at_s)


def _request(ident: str, row: TraceRow, cycle: int, number: int) -> SimRequest:
    """Text of its own but for the blocks that it shares with others of the same pass through the trace."""
    own = (number + 1) << 40
    left, segments = row.prompt, []
    for block in row.blocks:
        segments.append(((cycle << 32) + block, min(BLOCK, left)))
        left -= BLOCK
    if not row.blocks:
        segments.append((own, row.prompt))
    return SimRequest(ident, SegmentText([*segments, (own + 1, row.output)]), row.prompt, row.output)

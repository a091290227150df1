"""Where the traffic of a plan comes from: a description in a few numbers, or a file of requests that happened."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

from gateway.config.sizes import Unreadable
from gateway.core.forecast import Sample, Traffic
from gateway.errors import ConfigError

__all__ = ["Workload", "described", "from_file", "parse_rate"]

_SPREAD = 1.0
"""Sigma of the log of prompt and answer lengths: of three public traces, prompts have 1.0 to 1.1 (mean over median)
and answers of one 1.0; the answers of the others are less spread."""
_QUANTILES = 64
_STRIDE = 37
"""Coprime to the number of quantiles, so that each prompt length meets another answer length, as if independent."""
_MOST = 20_000
"""Requests that are read from a file."""
_RATE = re.compile(r"\s*([0-9.]+)\s*/\s*(s|sec|second|m|min|minute|h|hour)\s*")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests, how many a second, and in words where that comes from. `rate` 0: not known."""

    traffic: Traffic
    rate: float
    origin: str


def parse_rate(text: str) -> float:
    """Requests a second from `0.5/s`, `30/min` or `1000/h`. Raises Unreadable."""
    found = _RATE.fullmatch(text)
    try:
        rate = float(found[1]) / _SECONDS[found[2][0]] if found else 0.0
    except ValueError:
        rate = 0.0
    if not 0.0 < rate < math.inf:
        raise Unreadable("is not a rate", "write it like 0.5/s, 30/min or 1000/h")
    return rate


def described(prompt: int, output: int, cached: float, rate: float) -> Workload:
    """Traffic with these means in tokens; `cached` is the share of each prompt that is in the prefix cache."""
    prompts, outputs = _spread(prompt), _spread(output)
    samples = [
        Sample(tokens, min(int(tokens * cached), tokens - 1), outputs[number * _STRIDE % _QUANTILES])
        for number, tokens in enumerate(prompts)
    ]
    share = f", {cached:.0%} of them cached" if cached else ""
    return Workload(Traffic(samples), rate, f"prompts of {prompt:,} tokens{share}, answers of {output:,}, on average")


def _spread(mean: int) -> list[int]:
    """Quantiles of a log-normal length with that mean."""
    normal = NormalDist(0.0, _SPREAD)
    raw = [math.exp(normal.inv_cdf((number + 0.5) / _QUANTILES)) for number in range(_QUANTILES)]
    scale = mean * _QUANTILES / sum(raw)
    return [max(1, round(scale * each)) for each in raw]


def from_file(file: Path, model: str | None, rate: float) -> Workload:
    """The requests of a journal, or of a trace with `input_tokens` and `output_tokens`, one JSON object a line.

    `model`: only those that asked for it. `rate` 0: as many a second as the file's own times say. Raises ConfigError.
    """
    samples: list[Sample] = []
    first, last = math.inf, -math.inf
    seen: set[int] = set()
    try:
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                row = _row(line)
                sample = _sample(row, model, seen) if row is not None else None
                if row is None or sample is None:
                    continue
                samples.append(sample)
                at = _time(row)
                first, last = min(first, at), max(last, at)
                if len(samples) >= _MOST:
                    break
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} can't be read: {getattr(error, 'strerror', None) or 'it is not text'}") from None
    if not samples:
        asked = f" for {model}" if model else ""
        raise ConfigError(
            f"{file} holds no finished request{asked}: it should be a journal, or lines with input_tokens"
        )
    span = last - first
    own = (len(samples) - 1) / span if len(samples) > 1 and 0.0 < span < math.inf else 0.0
    return Workload(Traffic(samples), rate or own, f"{len(samples):,} requests of {file.name}")


def _row(line: str) -> Mapping[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _sample(row: Mapping[str, Any], model: str | None, seen: set[int]) -> Sample | None:
    settled, request = row.get("settled"), row.get("request")
    if isinstance(settled, dict) and isinstance(request, dict):
        if model is not None and request.get("model") != model:
            return None
        prompt, output = settled.get("prompt_tokens"), settled.get("completion_tokens")
        cached = settled.get("cached_tokens") or 0
    else:
        prompt, output = row.get("input_tokens"), row.get("output_tokens")
        cached = sum(_block_sizes(row, seen))
    if (
        not (isinstance(prompt, int) and isinstance(output, int) and isinstance(cached, int))
        or prompt < 1
        or output < 0
    ):
        return None
    return Sample(prompt, max(0, min(cached, prompt - 1)), output)


def _block_sizes(row: Mapping[str, Any], seen: set[int]) -> Iterator[int]:
    """Tokens of the blocks at the start of a prompt that came before, as a cache without bounds would hold them."""
    blocks = row.get("hash_ids")
    if not isinstance(blocks, list) or not blocks:
        return
    size = row.get("input_tokens", 0) // len(blocks) or 1
    fresh = False
    for block in blocks:
        fresh = fresh or block not in seen
        if not fresh:
            yield size
        seen.add(block)


def _time(row: Mapping[str, Any]) -> float:
    """Seconds on the file's own clock."""
    at, stamp = row.get("at"), row.get("timestamp_ms")
    if isinstance(at, int | float):
        return float(at)
    return stamp / 1000.0 if isinstance(stamp, int | float) else math.nan

"""Amounts in a time as people write them: `2M/hour`, `60/min`, `500M/day`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from gateway.config.sizes import Unreadable
from gateway.core.token_bucket import Rate

__all__ = ["KvSecondsRate", "RequestRate", "TokenRate", "parse_rate"]

_SCALES = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "G": 10**9, "T": 10**12}
_PERIODS = {
    **dict.fromkeys(("s", "sec", "second"), 1.0),
    **dict.fromkeys(("min", "minute"), 60.0),
    **dict.fromkeys(("h", "hour"), 3600.0),
    **dict.fromkeys(("d", "day"), 86400.0),
}
"""Seconds. `m` is left out: minute or month?"""
_RATE = re.compile(r"\s*(\d[\d_]*(?:\.\d+)?)\s*([KMBGT]?)\s*/\s*([a-z]+)\s*")
_HINT = "write an amount and a time, like 2M/hour, 500K/min, or 60/min"


def parse_rate(value: object) -> Rate:
    """The rate of `2M/hour`, `60/min` or `1.5M/d`; Unreadable otherwise, and for an amount of none."""
    if isinstance(value, Rate):
        return value
    if not isinstance(value, str) or len(value) > 64 or (match := _RATE.fullmatch(value)) is None:
        raise Unreadable("is not an amount in a time", _HINT)
    period = _PERIODS.get(match[3])
    if period is None:
        raise Unreadable("is not an amount in a time that is known here", "one of /s, /min, /hour, /day")
    amount = float(match[1].replace("_", "")) * _SCALES[match[2]]
    if not amount:
        raise Unreadable("must be over 0", "leave it out for no limit")
    return Rate(amount, period)


def _rate(*examples: str) -> WithJsonSchema:
    periods = "|".join(_PERIODS)
    pattern = rf"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*[KMBGT]?\s*/\s*({periods})\s*$"
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": [*examples]})


TokenRate = Annotated[Rate, BeforeValidator(parse_rate), _rate("2M/hour", "100K/min")]
RequestRate = Annotated[Rate, BeforeValidator(parse_rate), _rate("60/min", "1000/day")]
KvSecondsRate = Annotated[Rate, BeforeValidator(parse_rate), _rate("500M/hour")]

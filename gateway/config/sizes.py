"""Quantities with units as people write them: `24GiB`, `30s`, `5%`, `200000 tokens`, `1792GB/s`, `250T`, `27B`.

A number without its unit is refused wherever the unit could be mistaken: seconds or milliseconds, GB or GiB.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

__all__ = [
    "Bandwidth",
    "Bytes",
    "Count",
    "Duration",
    "Flops",
    "KvPool",
    "Number",
    "PoolSize",
    "Share",
    "Tokens",
    "Unreadable",
    "Whole",
    "parse_bandwidth",
    "parse_bytes",
    "parse_count",
    "parse_duration",
    "parse_flops",
    "parse_number",
    "parse_pool",
    "parse_share",
    "parse_tokens",
    "parse_whole",
]

_QUANTITY = re.compile(r"\s*([+-]?(?:\d[\d_]*)?\.?\d+(?:[eE][+-]?\d{1,3})?)\s*([A-Za-z%/]*)\s*")

_BYTES = {"B": 1, **{f"{p}B": 1000 ** (i + 1) for i, p in enumerate("KMGT")}, "kB": 1000}
_BYTES |= {f"{p}iB": 1024 ** (i + 1) for i, p in enumerate("KMGT")}
_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_BANDWIDTH = {f"{unit}/s": float(scale) for unit, scale in _BYTES.items()}
_BANDWIDTH |= {f"{p}b/s": 1000 ** (i + 2) / 8 for i, p in enumerate("MGT")}
_COUNT = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_FLOPS = {"G": 1e9, "T": 1e12, "P": 1e15, "GFLOPS": 1e9, "TFLOPS": 1e12, "PFLOPS": 1e15}


class Unreadable(ValueError):
    """A value that can't be read; `hint` shows how to write it. The message never repeats the value.

    `absent`: it is well written, and what it refers to is not there on this machine.
    """

    def __init__(self, message: str, hint: str, *, absent: bool = False) -> None:
        super().__init__(message)
        self.hint = hint
        self.absent = absent


def _split(value: object) -> tuple[float, str] | None:
    """(number, unit) of a value, or None when it isn't a finite number with an optional unit."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        number, unit = value, ""
    elif isinstance(value, str) and len(value) <= 64 and (match := _QUANTITY.fullmatch(value)):
        number, unit = float(match[1].replace("_", "")), match[2]
    else:
        return None
    try:
        return (float(number), unit) if math.isfinite(number) else None
    except OverflowError:
        return None


def _parse(value: object, units: Mapping[str, float], what: str, hint: str) -> float:
    parts = _split(value)
    if parts is None:
        raise Unreadable(f"is not {what}", hint)
    number, unit = parts
    if number < 0:
        raise Unreadable("must not be negative", hint)
    if unit not in units:
        if not unit and number == 0:
            return 0.0
        raise Unreadable(f"is not {what}" if unit else f"has no unit; it must be {what}", hint)
    return number * units[unit]


def parse_bytes(value: object) -> int:
    """Bytes of `24GiB`, `512MiB`, `24GB`, or a plain number of bytes; Unreadable otherwise."""
    return round(_parse(value, {"": 1, **_BYTES}, "a size in bytes", "write it like 24GiB, 512MiB, or 24GB"))


def parse_duration(value: object) -> float:
    """Seconds of `30s`, `500ms`, `2m`, `1h` or `7d`; Unreadable otherwise, and for a number without unit."""
    return _parse(value, _SECONDS, "a duration", "write it like 30s, 500ms, 2m, or 1h")


def parse_share(value: object) -> float:
    """A share from 0 to 1 of `5%` or `0.05`; Unreadable otherwise."""
    share = _parse(value, {"%": 0.01, "": 1.0}, "a share", "write it like 60%, or 0.6")
    if share > 1:
        raise Unreadable("is a share over 100%", "write it like 60%, or 0.6")
    return share


def parse_tokens(value: object) -> int:
    """Tokens of `131072`, `131_072` or `131072 tokens`; Unreadable otherwise, `128k` included (128,000 or 131,072?)."""
    tokens = _parse(value, {"": 1, "tokens": 1, "token": 1}, "a number of tokens", "write the number: 131072, not 128k")
    if tokens != int(tokens):
        raise Unreadable("is not a whole number of tokens", "write the number: 131072")
    return int(tokens)


def parse_bandwidth(value: object) -> float:
    """Bytes a second of `1792GB/s`, `1.8TB/s` or `200Gb/s`; Unreadable otherwise."""
    return _parse(value, _BANDWIDTH, "a bandwidth", "write it like 936GB/s (bytes) or 200Gb/s (bits)")


def parse_flops(value: object) -> float:
    """FLOP a second of `250T` or `1.5P` (dense, 16-bit); Unreadable otherwise."""
    return _parse(value, _FLOPS, "a compute rate", "write it like 250T (dense 16-bit FLOP/s)")


def parse_count(value: object) -> float:
    """A count of `27B`, `1.7B` or `270M`; Unreadable otherwise."""
    return _parse(value, _COUNT, "a count of parameters", "write it like 27B, or 270M")


def parse_number(value: object) -> float:
    """A plain number; Unreadable otherwise."""
    return _parse(value, {"": 1}, "a number", "write a plain number like 0.35")


def parse_whole(value: object) -> int:
    """A whole number; Unreadable otherwise."""
    number = _parse(value, {"": 1}, "a whole number", "write a plain number like 3")
    if number != int(number):
        raise Unreadable("is not a whole number", "write a plain number like 3")
    return int(number)


@dataclass(frozen=True, slots=True)
class PoolSize:
    """A declared KV pool: in bytes or in tokens, never both; both None means: find out."""

    bytes: int | None = None
    tokens: int | None = None


def parse_pool(value: object) -> PoolSize:
    """A pool of `auto`, `40GiB` or `200000 tokens`; Unreadable otherwise, and for a plain number."""
    hint = "write auto, a size like 40GiB, or `200000 tokens`"
    if isinstance(value, PoolSize):
        return value
    if value == "auto":
        return PoolSize()
    parts = _split(value)
    if parts is not None and parts[1] in ("tokens", "token"):
        size = PoolSize(tokens=parse_tokens(value))
    else:
        size = PoolSize(bytes=round(_parse(value, _BYTES, "a KV pool", hint)))
    if not (size.bytes or size.tokens):
        raise Unreadable("is an empty KV pool", hint)
    return size


def _schema(unit: str, pattern: str, *examples: str, number: bool = False) -> WithJsonSchema:
    """`x-unit` tells the schema how to write a default; it is taken out there."""
    kind = ["string", "number"] if number else "string"
    return WithJsonSchema({"type": kind, "pattern": pattern, "examples": [*examples], "x-unit": unit})


_N = r"^\s*[0-9][0-9_]*(\.[0-9]+)?([eE][+-]?[0-9]+)?\s*"
_B = "([KMGTk]?i?B)"

Bytes = Annotated[int, BeforeValidator(parse_bytes), _schema("bytes", f"{_N}{_B}?$", "24GiB", "512MiB", number=True)]
Duration = Annotated[
    float, BeforeValidator(parse_duration), _schema("duration", f"{_N}(us|ms|s|m|min|h|d)$", "30s", "500ms", "2m")
]
Share = Annotated[float, BeforeValidator(parse_share), _schema("share", f"{_N}%?$", "60%", number=True)]
Tokens = Annotated[int, BeforeValidator(parse_tokens), _schema("tokens", f"{_N}(tokens?)?$", "131072", number=True)]
Bandwidth = Annotated[
    float, BeforeValidator(parse_bandwidth), _schema("bandwidth", f"{_N}({_B}|[MGT]b)/s$", "936GB/s", "200Gb/s")
]
Flops = Annotated[float, BeforeValidator(parse_flops), _schema("flops", f"{_N}[GTP](FLOPS)?$", "250T")]
Count = Annotated[float, BeforeValidator(parse_count), _schema("count", f"{_N}[KMBT]?$", "27B", "270M", number=True)]
Number = Annotated[float, BeforeValidator(parse_number), WithJsonSchema({"type": "number"})]
Whole = Annotated[int, BeforeValidator(parse_whole), WithJsonSchema({"type": "integer"})]
KvPool = Annotated[
    PoolSize,
    BeforeValidator(parse_pool),
    _schema("pool", f"^auto$|{_N}({_B}|tokens?)$", "auto", "40GiB", "200000 tokens"),
]

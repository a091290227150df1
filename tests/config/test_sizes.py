"""Units as people write them, and what is refused because it could be mistaken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config import sizes
from gateway.config.sizes import PoolSize, Unreadable


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (sizes.parse_bytes, "24GiB", 24 * 1024**3),
        (sizes.parse_bytes, "24 GB", 24 * 10**9),
        (sizes.parse_bytes, "1.5KiB", 1536),
        (sizes.parse_bytes, 4096, 4096),
        (sizes.parse_bytes, "1_000kB", 1_000_000),
        (sizes.parse_duration, "30s", 30.0),
        (sizes.parse_duration, "500ms", 0.5),
        (sizes.parse_duration, "2m", 120.0),
        (sizes.parse_duration, "1h", 3600.0),
        (sizes.parse_duration, "7d", 604_800.0),
        (sizes.parse_duration, 0, 0.0),
        (sizes.parse_share, "5%", 0.05),
        (sizes.parse_share, 0.35, 0.35),
        (sizes.parse_share, "100%", 1.0),
        (sizes.parse_tokens, "200000 tokens", 200_000),
        (sizes.parse_tokens, 131_072, 131_072),
        (sizes.parse_bandwidth, "1792GB/s", 1792e9),
        (sizes.parse_bandwidth, "200Gb/s", 25e9),
        (sizes.parse_flops, "250T", 250e12),
        (sizes.parse_flops, "1.5 PFLOPS", 1.5e15),
        (sizes.parse_count, "27B", 27e9),
        (sizes.parse_count, "270M", 270e6),
        (sizes.parse_whole, "3", 3),
        (sizes.parse_number, "0.35", 0.35),
        (sizes.parse_pool, "auto", PoolSize()),
        (sizes.parse_pool, "40GiB", PoolSize(bytes=40 * 1024**3)),
        (sizes.parse_pool, "200000 tokens", PoolSize(tokens=200_000)),
    ],
)
def test_read(parse, text, value) -> None:
    assert parse(text) == pytest.approx(value) if isinstance(value, float) else parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (sizes.parse_duration, 30),  # seconds or milliseconds?
        (sizes.parse_duration, "30"),
        (sizes.parse_duration, "30 fortnights"),
        (sizes.parse_duration, "-1s"),
        (sizes.parse_bytes, "24 gigs"),
        (sizes.parse_bytes, "24Gib"),  # bits or bytes?
        (sizes.parse_bytes, True),
        (sizes.parse_tokens, "128k"),  # 128,000 or 131,072?
        (sizes.parse_tokens, 1.5),
        (sizes.parse_share, "101%"),
        (sizes.parse_share, 60),
        (sizes.parse_flops, 250),
        (sizes.parse_bandwidth, "936GB"),
        (sizes.parse_pool, 200_000),  # bytes or tokens?
        (sizes.parse_pool, "0 tokens"),
        (sizes.parse_whole, 2.5),
        (sizes.parse_number, float("nan")),
        (sizes.parse_number, "inf"),
        (sizes.parse_number, 10**400),
        (sizes.parse_count, None),
        (sizes.parse_bytes, "9" * 100),
    ],
)
def test_refused(parse, text) -> None:
    with pytest.raises(Unreadable) as caught:
        parse(text)
    assert caught.value.hint


PARSERS = [getattr(sizes, name) for name in sizes.__all__ if name.startswith("parse_")]


@given(st.sampled_from(PARSERS), st.one_of(st.text(max_size=80), st.integers(), st.floats(), st.booleans(), st.none()))
def test_whatever_comes_is_read_or_refused_in_words(parse, value) -> None:
    try:
        found = parse(value)
    except Unreadable as refused:
        found = refused
    assert isinstance(found, Unreadable | PoolSize) or found >= 0


@given(st.integers(0, 2**50), st.sampled_from(["B", "KiB", "MiB", "GiB", "TiB"]))
def test_bytes_are_exact_in_binary_units(number: int, unit: str) -> None:
    scale = 1024 ** ["B", "KiB", "MiB", "GiB", "TiB"].index(unit)
    assert sizes.parse_bytes(f"{number}{unit}") == number * scale

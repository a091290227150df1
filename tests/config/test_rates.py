"""Amounts in a time, and what becomes of them in the plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.compile import compile_policy
from gateway.config.load import load
from gateway.config.rates import parse_rate
from gateway.config.sizes import Unreadable
from gateway.core.quota import ClientLimits, Quota
from gateway.core.token_bucket import Rate


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("2M/hour", Rate(2e6, 3600)),
        ("2000000/h", Rate(2e6, 3600)),
        ("2_000_000 / hour", Rate(2e6, 3600)),
        ("1.5M/day", Rate(1.5e6, 86_400)),
        ("60/min", Rate(60, 60)),
        ("100K/minute", Rate(1e5, 60)),
        ("5/s", Rate(5, 1)),
        ("1B/d", Rate(1e9, 86_400)),
        (Rate(1, 1), Rate(1, 1)),
    ],
)
def test_read(text: object, rate: Rate) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    "text",
    [
        "2M",
        2_000_000,
        "2M/month",
        "2M/m",
        "2m/hour",
        "0/hour",
        "-1/s",
        "M/hour",
        "2M/",
        "2 M tokens/hour",
        None,
        "9" * 99,
    ],
)
def test_refused(text: object) -> None:
    with pytest.raises(Unreadable) as caught:
        parse_rate(text)
    assert caught.value.hint


@given(st.from_regex(r"[0-9]{1,30}(\.[0-9]{1,9})?[KMBGT]?/(s|min|hour|day)", fullmatch=True))
def test_what_the_schema_allows_is_a_rate(text: str) -> None:
    if any(digit in text for digit in "123456789"):
        rate = parse_rate(text)
        assert rate.amount > 0
        assert rate.seconds in (1.0, 60.0, 3600.0, 86_400.0)


def test_a_key_has_its_limits_in_the_plan(tmp_path: Path) -> None:
    file = tmp_path / "kvgate.yaml"
    file.write_text(
        "auth: {keys: [{name: a, key: key-of-a-12345, limits: {running: 3, tokens: 2M/hour, kv_seconds: 500M/hour}},"
        " {name: b, key: key-of-b-12345, limits: {requests: 60/min}}, {name: c, key: key-of-c-12345}]}\n"
        "backends: [{name: rig, url: http://10.0.0.1:8000, engine: vllm}]\n"
    )
    assert compile_policy(load(file).policy).clients == {
        "a": ClientLimits(3, {Quota.TOKENS: Rate(2e6, 3600), Quota.KV_SECONDS: Rate(5e8, 3600)}),
        "b": ClientLimits(None, {Quota.REQUESTS: Rate(60, 60)}),
        "c": ClientLimits(),
    }

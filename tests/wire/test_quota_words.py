from __future__ import annotations

import pytest

from gateway.core.quota import ClientLimits, Levels, Quota, Shortfall
from gateway.core.token_bucket import Rate
from gateway.wire.quota_words import over_quota, quota_fields

LIMITS = ClientLimits(rates={Quota.TOKENS: Rate(2_000_000, 3600), Quota.REQUESTS: Rate(60, 60)})
LEVELS = Levels(1, {Quota.TOKENS: 1_800_000.7, Quota.REQUESTS: 59.5})


def test_openais_clients_are_told_durations() -> None:
    assert quota_fields("chat", LIMITS, LEVELS, 0.0) == (
        ("x-ratelimit-limit-tokens", "2000000"),
        ("x-ratelimit-remaining-tokens", "1800000"),
        ("x-ratelimit-reset-tokens", "6m0s"),
        ("x-ratelimit-limit-requests", "60"),
        ("x-ratelimit-remaining-requests", "59"),
        ("x-ratelimit-reset-requests", "500ms"),
    )


def test_anthropics_clients_are_told_moments() -> None:
    assert quota_fields("messages", LIMITS, LEVELS, 1_700_000_000.0) == (
        ("anthropic-ratelimit-tokens-limit", "2000000"),
        ("anthropic-ratelimit-tokens-remaining", "1800000"),
        ("anthropic-ratelimit-tokens-reset", "2023-11-14T22:19:20Z"),
        ("anthropic-ratelimit-requests-limit", "60"),
        ("anthropic-ratelimit-requests-remaining", "59"),
        ("anthropic-ratelimit-requests-reset", "2023-11-14T22:13:21Z"),
    )


@pytest.mark.parametrize(
    ("left", "text"),
    [(100.0, "0s"), (99.999, "1ms"), (99.0, "1s"), (98.5, "1.5s"), (41.0, "59s"), (40.0, "1m0s"), (-7400.0, "2h5m0s")],
)
def test_the_time_to_a_full_bucket(left: float, text: str) -> None:
    limits = ClientLimits(rates={Quota.TOKENS: Rate(100, 100)})
    assert dict(quota_fields("chat", limits, Levels(0, {Quota.TOKENS: left}), 0.0))["x-ratelimit-reset-tokens"] == text


def test_an_overdrawn_bucket_has_nothing_left() -> None:
    limits = ClientLimits(rates={Quota.KV_SECONDS: Rate(100, 100)})
    fields = dict(quota_fields("responses", limits, Levels(0, {Quota.KV_SECONDS: -20.0}), 0.0))
    assert fields["x-ratelimit-remaining-kv-seconds"] == "0"


@pytest.mark.parametrize(
    ("short", "said"),
    [
        (
            Shortfall(Quota.TOKENS, 123.5, 900, 2e6, 3600.0, 14.0),
            "The key 'k' may use 2,000,000 tokens per hour (limit tokens); 123 are left, and this request needs 900.",
        ),
        (
            Shortfall(Quota.REQUESTS, 0.2, 1, 60, 60.0, 0.8),
            "The key 'k' may use 60 requests per minute (limit requests); 0 are left, and this request needs 1.",
        ),
        (
            Shortfall(Quota.KV_SECONDS, -5.0, 1, 5e8, 3600.0, 3.0),
            "The key 'k' may use 500,000,000 token-seconds of KV cache per hour (limit kv_seconds); 0 are left.",
        ),
        (
            Shortfall(Quota.RUNNING, 0, 1, 16),
            "The key 'k' may have 16 requests running at once (limit running), and has.",
        ),
        (None, "A limit of the key 'k' is reached."),
    ],
)
def test_a_refusal_names_the_limit_and_what_is_left(short: Shortfall | None, said: str) -> None:
    assert over_quota("k", short) == said

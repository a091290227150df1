"""Prompt tokens from byte counts: the counts themselves, and that the estimate finds the truth."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.estimators.prompt_tokens import PromptTokenEstimator, TextCounts, Tier, count_text
from gateway.core.estimators.ratio_spread import RatioSpread

COUNTS = st.builds(
    TextCounts,
    letters=st.integers(0, 10**6),
    digits=st.integers(0, 10**5),
    other=st.integers(0, 10**5),
    non_ascii=st.integers(0, 10**5),
    messages=st.integers(0, 500),
    tools=st.integers(0, 100),
)


def test_byte_classes() -> None:
    counts = count_text([b"Ab c", "é 12\n".encode(), b"{}"], messages=2, tools=1)
    assert counts == TextCounts(letters=5, digits=2, other=3, non_ascii=2, messages=2, tools=1)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=8))
def test_every_byte_is_counted_once(pieces: list[bytes]) -> None:
    counts = count_text(pieces)
    assert counts.bytes == sum(map(len, pieces))
    assert counts == count_text([b"".join(pieces)])


def test_minus_is_the_text_since() -> None:
    start, more = [b"Hello 1!"], [b"And 22?"]
    assert count_text(start + more, 2).minus(count_text(start, 1)) == count_text(more, 1)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # Tokens as cl100k-like vocabularies give them, within a third.
        ("The quick brown fox jumps over the lazy dog and runs away into the forest. " * 20, 17 * 20),
        ('{"name": "get_weather", "arguments": {"city": "Paris"}}\n' * 20, 17 * 20),
        ("今天天气很好我们去公园散步吧" * 20, 14 * 20),
    ],
)
def test_prior_is_about_right(text: str, tokens: int) -> None:
    estimate = PromptTokenEstimator().estimate("m", "c", count_text([text.encode()]))
    assert estimate.tokens == pytest.approx(tokens, rel=0.34)
    assert estimate.tokens < estimate.high < 1.4 * estimate.tokens + 1
    assert estimate.tier == Tier.BYTES == "A"


def sample(rng: random.Random) -> TextCounts:
    size = int(rng.lognormvariate(8.5, 1.0)) + 40
    digits, other, high = (int(size * rng.uniform(0, top)) for top in (0.08, 0.2, 0.1))
    return TextCounts(size - digits - other - high, digits, other, high, rng.randrange(1, 12), rng.randrange(0, 6))


def truth(counts: TextCounts, rng: random.Random, scale: float = 1.0) -> int:
    """A tokenizer unlike the prior, with 2 % of noise."""
    exact = 0.21 * counts.letters + 0.6 * counts.digits + 0.5 * counts.other + 0.3 * counts.non_ascii
    return max(1, round((exact + 4 * counts.messages + 20 * counts.tools + 9) * scale * rng.lognormvariate(0, 0.02)))


def test_converges_to_a_tokenizer_unlike_the_prior() -> None:
    rng, estimator = random.Random(1), PromptTokenEstimator()
    errors, covered = [], 0
    for i in range(600):
        counts = sample(rng)
        exact = truth(counts, rng)
        if i >= 400:
            estimate = estimator.estimate("m", "c", counts)
            errors.append(abs(estimate.tokens - exact) / exact)
            covered += exact <= estimate.high
        estimator.learn("m", "c", counts, exact)
    assert sum(errors) / len(errors) < 0.05
    assert covered >= 0.9 * len(errors)


def test_clients_with_habits_of_their_own_converge_in_fifty() -> None:
    rng, estimator = random.Random(2), PromptTokenEstimator()
    for _ in range(50):
        for client, scale in (("dense", 1.4), ("plain", 1.0)):
            counts = sample(rng)
            estimator.learn("m", client, counts, truth(counts, rng, scale))
    for client, scale in (("dense", 1.4), ("plain", 1.0)):
        errors = []
        for _ in range(50):
            counts = sample(rng)
            errors.append(abs(estimator.estimate("m", client, counts).tokens / truth(counts, rng, scale) - 1))
        assert sum(errors) / len(errors) < 0.08


def test_a_burst_of_odd_prompts_spoils_no_other_client() -> None:
    rng, estimator = random.Random(2), PromptTokenEstimator()
    for client, scale, times in (("plain", 1.0, 200), ("dense", 2.0, 200)):
        for _ in range(times):
            counts = sample(rng)
            estimator.learn("m", client, counts, truth(counts, rng, scale))
    counts = sample(rng)
    exact = truth(counts, rng)
    assert estimator.estimate("m", "plain", counts).tokens == pytest.approx(exact, rel=0.5)
    for _ in range(15):
        counts = sample(rng)
        estimator.learn("m", "plain", counts, truth(counts, rng))
    counts = sample(rng)
    assert estimator.estimate("m", "plain", counts).tokens == pytest.approx(truth(counts, rng), rel=0.25)


def test_models_learn_apart() -> None:
    rng, estimator = random.Random(3), PromptTokenEstimator()
    counts = sample(rng)
    before = estimator.estimate("other", "c", counts)
    for _ in range(50):
        estimator.learn("m", "c", counts, 3 * before.tokens)
    assert estimator.estimate("other", "c", counts) == before


def test_safety_shrinks_with_a_stable_client() -> None:
    rng, estimator = random.Random(4), PromptTokenEstimator()
    counts = sample(rng)
    unseen = estimator.estimate("m", "c", counts)
    for _ in range(300):
        estimator.learn("m", "c", counts, 1000)
    seen = estimator.estimate("m", "c", counts)
    assert seen.tokens == pytest.approx(1000, rel=0.02)
    assert seen.high / seen.tokens < 1.06 < unseen.high / unseen.tokens


def test_an_exact_start_leaves_only_the_addition_uncertain() -> None:
    estimator = PromptTokenEstimator()
    added = count_text([b"word " * 1000])
    estimate = estimator.estimate_after("m", "c", 80_000, added)
    alone = estimator.estimate("m", "c", added)
    assert estimate.tokens == 80_000 + alone.tokens
    assert estimate.high - estimate.tokens == alone.high - alone.tokens
    assert estimate.tier == Tier.ANCHORED


@settings(deadline=None)
@given(st.lists(st.tuples(COUNTS, st.integers(-5, 10**7)), max_size=30), COUNTS)
def test_no_lesson_breaks_it(lessons: list[tuple[TextCounts, int]], asked: TextCounts) -> None:
    estimator = PromptTokenEstimator()
    for counts, exact in lessons:
        estimator.learn("m", "c", counts, exact)
    estimate = estimator.estimate("m", "c", asked)
    assert 1 <= estimate.tokens <= estimate.high
    assert estimate.tokens <= 20 * 3 * (asked.bytes + 20 * (asked.messages + asked.tools) + 20)


def test_clients_are_bounded() -> None:
    estimator, counts = PromptTokenEstimator(), count_text([b"word " * 100])
    for i in range(5000):
        estimator.learn("m", f"c{i}", counts, 500)
    fresh = estimator.estimate("m", "never seen", counts)
    assert estimator.estimate("m", "c0", counts) == fresh
    assert estimator.estimate("m", "c4999", counts) != fresh


def test_spread_finds_the_quantile() -> None:
    rng, spread = random.Random(6), RatioSpread()
    for _ in range(3000):
        spread.learn(rng.lognormvariate(0.0, 0.2))
    assert spread.quantile(0.5) == pytest.approx(1.0, abs=0.08)
    assert spread.high == pytest.approx(1.39, abs=0.12)


def test_spread_survives_ratios_off_its_scale() -> None:
    spread = RatioSpread()
    for _ in range(2000):
        spread.learn(1e9)
    assert 2.0 < spread.high < 2.5
    for _ in range(2000):
        spread.learn(1e-9)
    assert spread.high == 1.02

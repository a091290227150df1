"""Prompt tokens from byte counts: the counts themselves, and that the estimate finds the truth."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.estimators.prompt_tokens import PromptTokenEstimator, Tier
from gateway.core.estimators.ratio_spread import RatioSpread
from gateway.core.estimators.text_counts import FEATURES, TextCounts, count_prompt, count_text
from gateway.core.prefix.chain import Chain, fingerprint

INDEX = {name: i for i, name in enumerate(FEATURES)}


def made_of(messages: int = 0, tools: int = 0, **kinds: float) -> TextCounts:
    features = [0.0] * len(FEATURES)
    for name, count in kinds.items():
        features[INDEX[name]] = float(count)
    return TextCounts(tuple(features), int(sum(kinds.values())), messages, 0, tools)


COUNTS = st.builds(
    made_of,
    messages=st.integers(0, 500),
    tools=st.integers(0, 100),
    common=st.integers(0, 10**6),
    uncommon=st.integers(0, 10**6),
    digit=st.integers(0, 10**5),
    punctuation=st.integers(0, 10**5),
    han=st.integers(0, 10**5),
    space_word=st.integers(0, 10**5),
    punctuation_pair=st.integers(0, 10**4),
)
BYTES = FEATURES[: FEATURES.index("camel")]


def named(counts: TextCounts) -> dict[str, float]:
    return {name: count for name, count in zip(FEATURES, counts.features, strict=True) if count}


def test_kinds_and_pairs() -> None:
    counts = count_text([b"Ab c", "é 12\n".encode(), b'{}"'], messages=2)
    assert named(counts) == {
        "capital": 1,
        "uncommon": 2,
        "space": 2,
        "latin": 1,
        "digit": 2,
        "line": 1,
        "punctuation": 2,
        "quote": 1,
        "digit_pair": 1,
        "punctuation_pair": 1,
        "space_word": 1,
    }
    assert (counts.bytes, counts.messages) == (13, 2)


def test_scripts_are_told_apart() -> None:
    assert named(count_text(["日本ごПриветĸ한국שلĀ😀—".encode()])) == {
        "han": 2,
        "kana": 1,
        "cyrillic": 6,
        "latin_extended": 2,
        "hangul": 2,
        "middle_east": 2,
        "emoji": 1,
        "symbol": 1,
    }


@settings(deadline=None)
@given(st.lists(st.text(max_size=200), max_size=8))
def test_every_character_is_counted_once(pieces: list[str]) -> None:
    encoded = [piece.encode(errors="replace") for piece in pieces]
    counts = count_text(encoded)
    assert counts.bytes == sum(map(len, encoded))
    assert sum(counts.features[: len(BYTES)]) == sum(len(piece.decode()) for piece in encoded)
    assert counts == count_text([b"".join(encoded)])


@settings(deadline=None)
@given(st.lists(st.sampled_from(["user\nWie geht's?\n", "assistant\n" + "gut " * 40, "tool\n{}\n", ""]), max_size=12))
def test_messages_one_by_one_are_the_whole(messages: list[str]) -> None:
    ends, text = [], b"[{}]"
    for message in messages:
        text += message.encode()
        ends.append(len(text))
    whole = count_prompt(text, ends[-8:], messages=len(messages), tools=1, tool_bytes=4)
    assert len(whole.turns) == max(0, len(ends[-8:]) - 1)
    assert whole.bytes == len(text)
    assert (whole.messages, whole.tools, whole.offered) == (len(messages), 1, count_text([b"[{}]"]).features)
    flat = count_text([text[4:]]).features[: len(BYTES)]
    assert whole.features[: len(BYTES)] == flat
    for message, turn in zip(messages[::-1], whole.turns[::-1], strict=False):
        assert turn.bytes == len(message)
        assert turn.answer == message.startswith("assistant")
        assert turn.results == message.startswith("tool")


def test_a_long_text_is_known_by_its_slices() -> None:
    text = ("def f(x):\n    return g(x, 17)\n" * 4000).encode()
    counts, alike = count_text([text]), count_text([text[:9000]])
    for name in BYTES:
        share, wanted = counts.features[INDEX[name]] / len(text), alike.features[INDEX[name]] / 9000
        assert share == pytest.approx(wanted, rel=0.05, abs=0.002), name


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
    assert estimate.tokens == pytest.approx(tokens, rel=0.25)
    assert estimate.tokens < estimate.high < 1.4 * estimate.tokens + 1
    assert estimate.tier == Tier.BYTES == "A"


def sample(rng: random.Random) -> TextCounts:
    size = int(rng.lognormvariate(8.5, 1.0)) + 40
    digits, other, high = (int(size * rng.uniform(0, top)) for top in (0.08, 0.2, 0.1))
    letters = size - digits - other - high
    return made_of(
        rng.randrange(1, 12),
        rng.randrange(0, 6),
        common=0.6 * letters,
        uncommon=0.22 * letters,
        rare=0.02 * letters,
        space=0.16 * letters,
        space_word=0.14 * letters,
        digit=digits,
        digit_pair=0.4 * digits,
        punctuation=other,
        han=high / 3,
    )


def truth(counts: TextCounts, rng: random.Random, scale: float = 1.0) -> int:
    """A tokenizer unlike the prior, with 2 % of noise."""
    kinds = dict.fromkeys(FEATURES, 0.0) | named(counts)
    exact = 0.08 * kinds["common"] + 0.5 * kinds["uncommon"] + 0.6 * kinds["digit"] + 0.5 * kinds["punctuation"]
    exact += 1.1 * kinds["han"] + 4 * counts.messages + 20 * counts.tools + 9
    return max(1, round(exact * scale * rng.lognormvariate(0, 0.02)))


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


def prompt(messages: list[str]) -> tuple[TextCounts, Chain]:
    """What `measure` makes of messages that are rendered so."""
    ends, text = [], b""
    for message in messages:
        text += message.encode() + b"\n"
        ends.append(len(text))
    chain = fingerprint([text], ends)
    return count_prompt(text, [end for _, end in chain.anchors], messages=len(messages)), chain


START = ["system\n" + "You help with everything there is to do. " * 900, "user\nFirst question?"]


def test_an_exact_start_leaves_only_the_addition_uncertain() -> None:
    estimator = PromptTokenEstimator()
    estimator.learn("m", "c", *prompt(START)[:1], 8_300, prompt(START)[1])
    counts, chain = prompt([*START, "assistant\nThe answer.", "user\n" + "And then? " * 20])
    estimate = estimator.estimate("m", "c", counts, chain)
    assert estimate.tier == Tier.ANCHORED == "B"
    assert 8_330 < estimate.tokens < 8_420
    assert estimate.tokens < estimate.high < estimate.tokens + 60
    assert estimator.estimate("other", "c", counts, chain).tier == Tier.BYTES
    assert estimator.estimate("m", "c", *prompt(START)).tokens == 8_300


def test_an_answer_that_comes_back_is_counted_as_the_engine_did() -> None:
    estimator = PromptTokenEstimator()
    estimator.learn("m", "c", *prompt(START)[:1], 8_300, prompt(START)[1], answer=640)
    told = ["assistant\n" + "A word of it. " * 150, "user\nMore?"]
    whole = estimator.estimate("m", "c", *prompt([*START, *told]))
    other = estimator.estimate("m", "c", *prompt([*START, "assistant\nShort.", "user\nMore?"]))
    assert 8_940 < whole.tokens < 8_975
    assert other.tokens < 8_340


def test_what_a_template_adds_to_messages_is_learned() -> None:
    estimator, messages, exact = PromptTokenEstimator(), list(START), 10_000
    misses = []
    for turn in range(40):
        counts, chain = prompt(messages)
        misses.append(exact - estimator.estimate("m", "c", counts, chain).tokens)
        estimator.learn("m", "c", counts, exact, chain, answer=6)
        messages += [f"assistant\nAnswer {turn}.", f"user\nQuestion {turn}?"]
        exact += 40  # some 18 more than by the messages' bytes
    assert abs(sum(misses[-10:]) / 10) < 0.25 * abs(misses[1])


def test_a_cut_prompt_is_not_learned() -> None:
    estimator = PromptTokenEstimator()
    counts, chain = prompt(START)
    before = estimator.estimate("m", "c", counts, chain)
    estimator.learn("m", "c", counts, 1024, chain)
    assert estimator.estimate("m", "c", counts, chain) == before


def test_one_odd_request_moves_little() -> None:
    rng, estimator = random.Random(7), PromptTokenEstimator()
    for _ in range(50):
        counts = sample(rng)
        estimator.learn("m", "c", counts, truth(counts, rng))
    counts = sample(rng)
    before = estimator.estimate("m", "c", counts)
    odd = sample(rng)
    estimator.learn("m", "c", odd, 3 * truth(odd, rng))
    assert estimator.estimate("m", "c", counts).tokens == pytest.approx(before.tokens, rel=0.06)


@pytest.mark.parametrize(
    "text", [" " * 50_000, "\n" * 50_000, "=" * 50_000, "-+" * 20_000, "word " * 9_000, "a" * 9_000]
)
def test_the_least_is_below_what_runs_may_be(text: str) -> None:
    # A run of 16 bytes and more is one token in the vocabularies of today.
    words = text.count(" word")
    assert PromptTokenEstimator().least(count_text([text.encode()])) <= len(text) / 16 + words


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


THAI = "สวัสดีครับ ผมชื่อสมชาย ทำงานที่กรุงเทพ ".encode() * 40
"""2,840 tokens with SmolLM2's vocabulary."""
SHORT_WORDS = b"the of and a to in is you that it " * 40


def test_the_most_of_a_prompt_goes_by_kinds_of_bytes_until_prompts_of_its_kind_were_seen() -> None:
    estimator, model = PromptTokenEstimator(), "HuggingFaceTB/SmolLM2-135M-Instruct"
    rare, plain = count_text([THAI]), count_text([SHORT_WORDS])
    for counts, real in ((rare, 2840), (plain, 401), (count_text([b"a" * 4000]), 1000)):
        assert estimator.most(model, "c", counts) >= real
    before = estimator.most(model, "c", plain)
    for _ in range(20):
        estimator.learn(model, "c", plain, 425)
    assert 401 <= estimator.most(model, "c", plain) < before, "what was shown is known better"
    assert estimator.most(model, "c", rare) >= 2840, "what was not shown is as unsure as before"

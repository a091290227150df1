"""Trust in predicted hits, against engines that behave and engines that don't."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.prefix.reuse import EDGES, FORGOTTEN, Match, Segment, bin_of
from gateway.core.prefix.trust import PrefixTrust

WHOLE = Match(10_000, 8000, (Segment(8000, 0),))


def test_bins_cover_up_to_forgotten() -> None:
    assert bin_of(0.0) == 0
    assert bin_of(0.05) == 1
    assert bin_of(1.99) == len(EDGES) - 1
    assert EDGES[-1] == FORGOTTEN


def test_prior_trusts_near_and_doubts_far() -> None:
    trust = PrefixTrust()
    near, middle, far = (trust.probability("b", bin_) for bin_ in (0, 4, 7))
    assert (near, middle, far) == (0.975, 0.65, 0.2)


def test_expected_hit_is_whole_blocks_and_never_everything() -> None:
    trust = PrefixTrust()
    for _ in range(200):
        trust.learn("b", Match(10_000, 10_000, (Segment(10_000, 0),)), 2500, 2496, block=16)
    everything = Match(10_000, 10_000, (Segment(10_000, 0),))
    assert trust.expected_hit("b", everything, 1000) == 999
    assert trust.expected_hit("b", everything, 1000, block=16) == 992
    assert trust.expected_hit("b", everything, 1000, block=2096) == 0
    assert trust.expected_hit("b", Match(10_000), 1000) == 0
    assert trust.expected_hit("b", everything, 1) == 0


def test_an_engine_that_never_hits_loses_trust_within_ten_requests() -> None:
    trust = PrefixTrust()
    for _ in range(10):
        trust.learn("b", WHOLE, 2500, 0, block=16)
    assert max(trust.probability("b", bin_) for bin_ in range(8)) < 0.15
    assert trust.expected_hit("b", WHOLE, 2500, block=528) == 0
    assert trust.share("other", WHOLE) == 0.975


def test_trust_comes_back() -> None:
    trust = PrefixTrust()
    for _ in range(100):
        trust.learn("b", WHOLE, 2500, 0)
    for _ in range(50):
        trust.learn("b", WHOLE, 2500, 2000)
    assert trust.probability("b", 0) > 0.6


def test_partial_hits_count_in_part() -> None:
    trust = PrefixTrust()
    for _ in range(400):
        trust.learn("b", WHOLE, 2500, 1000)  # predicted 2000
    assert 0.49 < trust.probability("b", 0) < 0.51


def test_a_cache_half_as_large_as_thought_is_found_out() -> None:
    trust, rng = PrefixTrust(), random.Random(5)
    for _ in range(600):
        bin_ = rng.randrange(8)
        distance = rng.uniform(EDGES[bin_ - 1] if bin_ else 0.0, EDGES[bin_])
        trust.learn("b", Match(10_000, 8000, (Segment(8000, bin_),)), 2500, 2000 if distance < 0.5 else 0)
    assert trust.probability("b", 3) > 0.9
    assert trust.probability("b", 5) < 0.1
    assert trust.probability("b", 7) < 0.1


def test_each_stretch_is_judged_by_itself() -> None:
    trust = PrefixTrust()
    match = Match(10_000, 8000, (Segment(4000, 0), Segment(8000, 6)))
    for _ in range(100):
        trust.learn("b", match, 2500, 1000)  # the near half hits, the far half doesn't
    assert trust.probability("b", 0) > 0.95
    assert trust.probability("b", 6) < 0.05
    assert trust.expected_hit("b", match, 2500) in range(950, 1051)


def test_a_prefix_shorter_than_a_block_proves_nothing() -> None:
    trust = PrefixTrust()
    before = trust.version
    trust.learn("b", Match(10_000, 2000, (Segment(2000, 0),)), 2500, 0, block=1568)
    assert trust.version == before
    trust.learn("b", WHOLE, 2500, 0, block=1568)
    assert trust.version > before


def test_forgetting_goes_back_to_the_prior() -> None:
    trust = PrefixTrust()
    trust.learn("b", WHOLE, 2500, 0)
    trust.forget("b")
    assert trust.probability("b", 0) == 0.975


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 10_000), st.integers(0, 7), st.integers(0, 5000), st.integers(1, 2096)), max_size=60
    )
)
def test_probabilities_stay_probabilities(lessons: list[tuple[int, int, int, int]]) -> None:
    trust = PrefixTrust()
    for end, bin_, cached, block in lessons:
        trust.learn("b", Match(10_000, end, (Segment(end, bin_),)), 2500, cached, block)
    for bin_ in range(8):
        assert 0.0 < trust.probability("b", bin_) < 1.0
    hit = trust.expected_hit("b", WHOLE, 2500, 16)
    assert 0 <= hit <= 2000
    assert hit % 16 == 0

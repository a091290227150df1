"""What was ours at an earlier moment, and what of an engine's figure is then others'."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.foreign import ForeignLoad
from gateway.core.ledger import Totals
from gateway.core.track import KEPT, Own, Track


def held(tokens: int, running: int = 1, decoding: int = 1, slack: int = 0) -> Totals:
    return Totals(running=running, decoding=decoding, held=tokens, holdable=tokens + slack)


def test_the_past_is_as_it_was_left() -> None:
    track = Track()
    track.note(held(100), 10.0)
    track.note(held(300, running=3), 20.0)
    assert track.between(12.0, 13.0) == Own(1, 0, 100, 100)
    assert track.between(25.0, 26.0) == Own(3, 2, 300, 300)
    assert track.between(15.0, 25.0) == Own(3, 2, 100, 300)
    assert track.between(5.0, 15.0) == Own(1, 0, 0, 100)
    assert track.between(1.0, 2.0) == Own(0, 0, 0, 0)


def test_changes_within_a_tenth_of_a_second_are_told_by_their_extremes() -> None:
    track = Track()
    for tokens, now in ((100, 10.0), (900, 10.02), (400, 10.04)):
        track.note(held(tokens), now)
    assert track.between(10.0, 10.05)[2:] == (100, 900)
    assert track.between(11.0, 12.0)[2:] == (400, 400)


@given(st.lists(st.tuples(st.floats(0.0, 3.0), st.integers(0, 10_000)), min_size=1, max_size=400), st.floats(0.0, 29.0))
def test_it_bounds_what_was_true_at_any_moment_of_the_last_half_minute(
    changes: list[tuple[float, int]], age: float
) -> None:
    track, now, history = Track(), 100.0, [(0.0, 0)]
    for pause, tokens in changes:
        now += pause
        track.note(held(tokens), now)
        history.append((now, tokens))
    then = now - age
    truth = [tokens for at, tokens in history if at <= then][-1]
    own = track.between(then, then)
    assert own.least <= truth <= own.most
    assert len(track) <= KEPT / 0.1 + 2


def test_what_is_ours_at_most_is_nobody_elses() -> None:
    others = ForeignLoad()
    for now in range(20):
        others.observe(5000, least=1000, most=5000, pool=100_000, now=float(now))
    assert others.tokens(20.0) == 0.0


def test_others_are_noticed_above_three_hundredths_and_approached_by_a_fifth() -> None:
    others = ForeignLoad()
    others.observe(2999, 0, 0, 100_000, 0.0)
    assert others.tokens(0.0) == 0.0
    for k in range(1, 4):
        others.observe(10_000, 0, 0, 100_000, float(k))
    assert others.tokens(3.0) == pytest.approx(10_000 * (1 - 0.8**3))
    others.observe(9000, 7000, 8000, 100_000, 4.0)
    assert others.tokens(4.0) == pytest.approx(10_000 * (1 - 0.8**3) * 0.8 + 0.2 * 2000)


def test_what_a_sample_does_not_contradict_stays() -> None:
    others = ForeignLoad()
    for k in range(60):
        others.observe(10_000, 0, 0, 100_000, float(k))
    before = others.tokens(59.0)
    others.observe(15_000, 4000, 6000, 100_000, 60.0)
    assert others.tokens(60.0) == before


def test_without_samples_half_is_gone_every_minute_after_ten_seconds() -> None:
    others = ForeignLoad()
    for k in range(60):
        others.observe(8000, 0, 0, 10_000, 0.0 + k)
    there = others.tokens(59.0)
    assert others.tokens(69.0) == there
    assert others.tokens(129.0) == pytest.approx(there / 2)
    assert others.tokens(189.0) == pytest.approx(there / 4)


@given(
    st.lists(
        st.tuples(st.floats(0.0, 100.0), st.integers(0, 100_000), st.integers(0, 100_000), st.integers(0, 50_000)),
        max_size=100,
    )
)
def test_others_never_hold_less_than_nothing_nor_more_than_is_in_use(
    samples: list[tuple[float, int, int, int]],
) -> None:
    others, now = ForeignLoad(), 0.0
    for pause, used, least, slack in samples:
        now += pause
        others.observe(used, least, least + slack, 100_000, now)
        assert 0.0 <= others.tokens(now) <= used

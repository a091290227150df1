"""What was learned comes back as it was kept, a little older; what nothing can have taught does not."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gateway.core.account import Totals
from gateway.core.decide import decide
from gateway.core.estimators.answer_shape import AnswerShape
from gateway.core.estimators.output_length import OutputKey
from gateway.core.estimators.prompt_tokens import count_text
from gateway.core.estimators.proportions import Proportions
from gateway.core.estimators.ratio_spread import RatioSpread
from gateway.core.experience import Experience
from gateway.core.learned import (
    AnswerLengths,
    CacheTrust,
    EventTokens,
    Factor,
    PromptTokens,
    Record,
    Speed,
    learned,
    relearn,
)
from gateway.core.lease import Ended, Lease
from gateway.core.prefix.chain import fingerprint
from tests.core.fleet import NOW, plan, request, snapshot, view

DAY = 86_400.0
CHAIN = fingerprint([b"shared by all " * 2000])
TEXT = count_text([b"shared by all " * 2000])
KEY = OutputKey("m", "c", "m", AnswerShape(tools=True))


def serve(experience: Experience, number: int, tokens: int) -> None:
    """One request that hit a prefix, streamed two tokens an event and ran at half the predicted speed."""
    seen, asked = view(), request(f"r{number}", prompt=7000, shape=KEY.shape)
    decision = decide(plan(), asked, snapshot(seen), NOW, 0.5)
    now = NOW + 100.0 * number
    lease = Lease(f"l{number}", asked, CHAIN, decision, "a", seen.offers[0], 16, now)
    experience.sent(lease, seen)
    experience.first_token(lease, Totals(running=1, decoding=1, resident=7000), now + 2.8)
    ended = Ended(
        completed=True, prompt_tokens=7000, output_tokens=tokens, cached_tokens=0, finished=True, events=tokens // 2
    )
    experience.learn(lease, ended, TEXT, Totals(), now + 2.8 + tokens * 0.04)


@pytest.fixture
def taught() -> Experience:
    experience = Experience()
    for number in range(60):
        serve(experience, number, 100)
    return experience


def records(experience: Experience, now: float) -> list[Record]:
    return [record for some in learned(experience, now) for record in some]


def test_everything_comes_back(taught: Experience) -> None:
    now = NOW + 6100.0
    again = Experience()
    relearn(again, records(taught, now), now, away=0.0)
    assert (
        again.outputs.quantile(0.9, KEY) == taught.outputs.quantile(0.9, KEY) != Experience().outputs.quantile(0.9, KEY)
    )
    assert again.tokens.estimate("m", "c", TEXT) == taught.tokens.estimate("m", "c", TEXT)
    assert again.tokens.estimate("m", "new", TEXT) == taught.tokens.estimate("m", "new", TEXT)
    assert again.tokens.estimate("m", "c", TEXT) != Experience().tokens.estimate("m", "c", TEXT)
    assert again.outputs.mean(KEY) == pytest.approx(taught.outputs.mean(KEY))
    assert again.factors("a", now) == pytest.approx(taught.factors("a", now))
    assert taught.factors("a", now)[1] > 1.5
    assert again.trust.probability("a\nm", 0) == taught.trust.probability("a\nm", 0) < 0.5
    assert again.events["a\nm"].tokens(64) == taught.events["a\nm"].tokens(64) > 100
    assert [*again.outputs.lengths] == [*taught.outputs.lengths], "least recently taught first, as before"


def test_time_away_counts_as_time(taught: Experience) -> None:
    now = NOW + 6100.0
    kept = records(taught, now)
    fresh, old = Experience(), Experience()
    relearn(fresh, kept, 50.0, away=10.0)
    relearn(old, kept, 50.0, away=5 * DAY)
    assert old.factors("a", 50.0)[1] == pytest.approx(1.0, abs=0.01)
    assert fresh.factors("a", 50.0)[1] > 1.5
    for experience in (fresh, old):
        for _ in range(10):
            experience.outputs.learn(KEY, 4000, True, 50.0)
    assert old.outputs.quantile(0.5, KEY) > fresh.outputs.quantile(0.5, KEY)
    backwards = Experience()
    relearn(backwards, kept, 50.0, away=-3600.0)
    assert backwards.factors("a", 50.0) == pytest.approx(taught.factors("a", now))


def test_backends_that_are_long_gone_are_not_kept_for_ever(taught: Experience) -> None:
    kept = records(taught, NOW + 30 * DAY)
    assert {type(record) for record in kept} == {AnswerLengths, PromptTokens}


def test_slices_are_short_enough_for_the_event_loop() -> None:
    experience = Experience()
    for i in range(500):
        experience.outputs.learn(OutputKey("m", f"c{i}"), 100, True, 0.0)
    assert max(map(len, learned(experience, 0.0))) <= 64
    assert len(records(experience, 0.0)) == len(experience.outputs.lengths)


_FRESH = Proportions()
HABITS = PromptTokens(
    "m", None, tuple(_FRESH.mean), tuple(map(tuple, _FRESH.variance)), RatioSpread().state(), samples=3, offset=0.5
)
FACTOR = Factor(0.1, 0.2, 3, 4.0)


@pytest.mark.parametrize(
    "wrong",
    [
        replace(HABITS, samples=-1),
        replace(HABITS, offset=math.nan),
        replace(HABITS, client="c"),
        replace(HABITS, mean=HABITS.mean[1:]),
        replace(HABITS, mean=(math.nan, *HABITS.mean[1:])),
        replace(HABITS, variance=HABITS.variance[1:]),
        replace(HABITS, variance=((0.0,) * len(HABITS.mean), *HABITS.variance[1:])),
        replace(HABITS, variance=((math.inf,) * len(HABITS.mean), *HABITS.variance[1:])),
        replace(HABITS, spread=HABITS.spread[1:]),
        replace(HABITS, spread=(0.0,) * len(HABITS.spread)),
        replace(HABITS, spread=(math.nan, *HABITS.spread[1:])),
        Speed("a", FACTOR, replace(FACTOR, level=math.inf)),
        Speed("a", replace(FACTOR, level=3.0), FACTOR),
        Speed("a", replace(FACTOR, variance=-1.0), FACTOR),
        Speed("a", replace(FACTOR, samples=-1), FACTOR),
        CacheTrust("a\nm", (1.0,), (1.0,)),
        CacheTrust("a\nm", (1.0,) * 8, (math.nan,) * 8),
        CacheTrust("a\nm", (0.0,) * 8, (0.0,) * 8),
        EventTokens("a\nm", 0.0),
        EventTokens("a\nm", math.nan),
    ],
)
def test_what_nothing_can_have_taught_is_refused(wrong: Record) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        relearn(Experience(), [wrong], 0.0, 0.0)


@pytest.mark.parametrize("level", [(), ("m", True), ("m", "c", "r"), ("m", "c", "r", "yes", "", False)])
def test_a_key_of_other_parts_is_refused(taught: Experience, level: tuple[str | bool, ...]) -> None:
    one = next(record for record in records(taught, NOW) if isinstance(record, AnswerLengths))
    for wrong in (replace(one, level=level), replace(one, samples=-1), replace(one, shifts=(0.9,) * 4)):
        with pytest.raises(ValueError, match=r"\w"):
            relearn(Experience(), [wrong], NOW, 0.0)

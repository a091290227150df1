"""What a backend's speed is learned from while others run there too."""

from __future__ import annotations

import pytest

from gateway.core.account import Totals
from gateway.core.backend import Offer
from gateway.core.decision import Decision, Verdict
from gateway.core.estimators.decode_speed import DecodeSpeed
from gateway.core.estimators.prefill_speed import PrefillSpeed
from gateway.core.estimators.speed_prior import SpeedPrior
from gateway.core.failure import FailureKind
from gateway.core.footprint import Footprint
from gateway.core.kv.shape import KvShape
from gateway.core.lease import Ended, Lease
from gateway.core.pace import Pace
from gateway.core.prefix.chain import fingerprint
from gateway.core.reasons import Reason
from tests.core.fleet import request

# A step of B sequences takes B hundredths of a second; a prompt token a thousandth.
SPEED = SpeedPrior(PrefillSpeed(0.001, half_depth=1e12), DecodeSpeed(0.0, 0.0, sequence_seconds=0.01))
OFFER = Offer(model="m", served_as="m", window=32_768, kv=KvShape(1000.0), speed=SPEED)
CHAIN = fingerprint([b"prompt"])


def lease(id: str, *, prompt: int = 1000, cached: int = 0, n: int = 1, prefill: float | None = None) -> Lease:
    footprint = Footprint(prompt, prompt, cached, prompt - cached, 100, 100, None, prompt + 100, 0, n)
    seconds = (prompt - cached) / 1000 if prefill is None else prefill
    decision = Decision(
        id, Verdict.ADMIT, Reason.ADMITTED, 0.0, 0.0, backend="a", footprint=footprint, predicted_prefill=seconds
    )
    return Lease(id, request(id, n=n), CHAIN, decision, "a", OFFER, 16, 0.0)


def whole(output: int, *, prompt: int = 1000, ttft: float | None = None, cached: int | None = 0) -> Ended:
    return Ended(completed=True, prompt_tokens=prompt, output_tokens=output, cached_tokens=cached, ttft=ttft)


def decoding(count: int) -> Totals:
    return Totals(running=count, decoding=count)


def factors(pace: Pace) -> tuple[float, float]:
    return pace.factors(0.0)


def run_alone(pace: Pace, id: str, at: float, *, prefill: float, step: float, tokens: int = 101) -> float:
    """One request by itself; returns when it ended."""
    one = lease(id)
    pace.sent(one)
    pace.first_token(one, decoding(1), at + prefill)
    end = at + prefill + step * (tokens - 1)
    pace.ended(one, whole(tokens, ttft=prefill), decoding(0), end)
    return end


def test_a_backend_as_predicted_keeps_its_prior() -> None:
    pace = Pace()
    run_alone(pace, "r", 0.0, prefill=1.0, step=0.01)
    assert factors(pace) == pytest.approx((1.0, 1.0))


def test_a_slow_one_is_found_out_in_both_phases() -> None:
    pace, now = Pace(), 0.0
    for i in range(30):
        now = run_alone(pace, f"r{i}", now, prefill=3.0, step=0.02)
    assert pace.factors(now) == pytest.approx((3.0, 2.0), rel=0.1)


def test_company_does_not_look_like_slowness() -> None:
    pace = Pace()
    one, two = lease("one"), lease("two", prompt=100)
    pace.sent(one)
    pace.first_token(one, decoding(1), 1.0)
    # Alone for 50 steps of 0.01 s, a prompt of 0.1 s cuts in, then 50 steps of two at 0.02 s.
    pace.sent(two)
    pace.first_token(two, decoding(2), 1.6)
    pace.ended(one, whole(101, ttft=1.0), decoding(1), 2.6)
    prefill, decode = factors(pace)
    assert prefill == pytest.approx(1.0)
    # What cuts in is taken from the time, and the steps of that time go with it.
    assert decode == pytest.approx(1.0, abs=0.05)


def test_the_first_token_of_a_prompt_that_others_joined_teaches_nothing() -> None:
    pace = Pace()
    one, two = lease("one"), lease("two")
    pace.sent(one)
    pace.sent(two)
    for each in (one, two):
        pace.first_token(each, decoding(1), 2.0)
        pace.ended(each, whole(1, ttft=2.0), decoding(0), 2.0)
    assert factors(pace) == (1.0, 1.0)


def test_the_engines_own_clock_is_believed_in_company_too() -> None:
    pace = Pace()
    one, two = lease("one"), lease("two")
    pace.sent(one)
    pace.sent(two)
    pace.first_token(one, decoding(1), 2.0)
    pace.ended(one, Ended(completed=True, prompt_tokens=1000, cached_tokens=0, prefill_seconds=2.0), decoding(0), 2.0)
    assert factors(pace)[0] > 1.2


def test_running_decodes_are_taken_off_the_first_token() -> None:
    pace = Pace()
    old, new = lease("old"), lease("new")
    pace.sent(old)
    pace.first_token(old, decoding(20), 1.0)  # twenty sequences: a step takes 0.2 s
    pace.sent(new)
    # Half a step until it is taken in, and one that it shares.
    pace.first_token(new, decoding(21), 2.3)
    pace.ended(new, whole(1, ttft=1.3), decoding(20), 2.3)
    assert factors(pace)[0] == pytest.approx(1.0)


def test_cached_tokens_are_not_prefill() -> None:
    pace = Pace()
    one = lease("one", cached=600)
    pace.sent(one)
    pace.first_token(one, decoding(1), 0.4)
    pace.ended(one, whole(1, ttft=0.4, cached=600), decoding(0), 0.4)
    two = lease("two", cached=600)
    pace.sent(two)
    pace.first_token(two, decoding(1), 1.4)
    pace.ended(two, whole(1, ttft=0.4, cached=None), decoding(0), 1.4)  # an engine that doesn't tell
    assert factors(pace)[0] == pytest.approx(1.0)


@pytest.mark.parametrize(
    "how",
    [Ended(), Ended(failure=FailureKind.TOKEN_GAP, output_tokens=50), whole(5, prompt=100, ttft=9.0)],
    ids=["left at once", "failed", "too short"],
)
def test_what_says_nothing_teaches_nothing(how: Ended) -> None:
    pace = Pace()
    one = lease("one")
    pace.sent(one)
    pace.first_token(one, decoding(1), 5.0)
    pace.ended(one, how, decoding(0), 95.0)
    assert factors(pace) == (1.0, 1.0)


def test_several_choices_teach_nothing_of_a_token() -> None:
    pace = Pace()
    one = lease("one", n=4)
    pace.sent(one)
    pace.first_token(one, decoding(4), 1.0)
    pace.ended(one, whole(400, ttft=1.0), decoding(0), 3.0)
    assert factors(pace)[1] == 1.0

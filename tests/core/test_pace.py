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


def lease(id: str, at: float = 0.0, *, prompt: int = 1000, cached: int = 0, n: int = 1) -> Lease:
    footprint = Footprint(prompt, prompt, cached, prompt - cached, 100, 100, None, prompt + 100, 0, n)
    seconds = (prompt - cached) / 1000
    decision = Decision(
        id, Verdict.ADMIT, Reason.ADMITTED, 0.0, 0.0, backend="a", footprint=footprint, predicted_prefill=seconds
    )
    return Lease(id, request(id, n=n), CHAIN, decision, "a", OFFER, 16, at)


def whole(output: int, *, prompt: int = 1000, ttft: float | None = None, cached: int | None = 0) -> Ended:
    return Ended(completed=True, prompt_tokens=prompt, output_tokens=output, cached_tokens=cached, ttft=ttft)


def decoding(count: int) -> Totals:
    return Totals(running=count, decoding=count)


def factors(pace: Pace) -> tuple[float, float]:
    return pace.factors(0.0)


def run_alone(pace: Pace, id: str, at: float, *, prefill: float, step: float, tokens: int = 101) -> float:
    """One request by itself; returns when it ended."""
    one = lease(id, at)
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
    one, two = lease("one"), lease("two", 1.5, prompt=100)
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


def test_prompts_that_queue_are_read_one_after_the_other() -> None:
    pace = Pace()
    leases = [lease(f"r{i}", 0.1 * i) for i in range(20)]
    for one in leases:
        pace.sent(one)
    for i, one in enumerate(leases):
        pace.first_token(one, decoding(0), 3.0 * (i + 1))  # each takes three times as long as predicted
        pace.ended(one, whole(1, ttft=3.0 * (i + 1)), decoding(0), 3.0 * (i + 1))
    pace.sent(lease("later", 99.0))
    assert factors(pace)[0] == pytest.approx(3.0, rel=0.15)


def test_prompts_that_are_read_together_share_their_time() -> None:
    pace = Pace()
    one, two = lease("one"), lease("two")
    pace.sent(one)
    pace.sent(two)
    for each in (one, two):
        pace.first_token(each, decoding(1), 2.0)
    for each in (one, two):
        pace.ended(each, whole(1, ttft=2.0), decoding(0), 2.1)
    assert factors(pace)[0] == pytest.approx(1.0)


def test_a_prompt_that_is_given_up_spoils_the_time_of_the_next_one() -> None:
    pace = Pace()
    gone, one = lease("gone"), lease("one")
    pace.sent(gone)
    pace.sent(one)
    pace.ended(gone, Ended(), decoding(0), 8.0)
    pace.first_token(one, decoding(1), 9.0)
    pace.ended(one, whole(1, ttft=9.0), decoding(0), 9.5)
    assert factors(pace) == (1.0, 1.0)


def test_an_answer_in_one_piece_hides_its_first_token() -> None:
    pace = Pace()
    one = lease("one")
    pace.sent(one)
    pace.first_token(one, decoding(1), 11.0)
    pace.ended(one, whole(500), decoding(0), 11.001)
    assert factors(pace) == (1.0, 1.0)


def test_the_engines_own_clock_is_believed() -> None:
    pace = Pace()
    one, two = lease("one"), lease("two")
    pace.sent(one)
    pace.sent(two)
    pace.first_token(one, decoding(1), 0.001)
    own = Ended(completed=True, prompt_tokens=1000, output_tokens=50, cached_tokens=0, prefill_seconds=2.0)
    pace.ended(one, own, decoding(0), 0.002)
    assert factors(pace)[0] > 1.2


def test_running_decodes_are_taken_off_the_time_of_a_prompt() -> None:
    pace = Pace()
    old, new = lease("old"), lease("new", 1.0)
    pace.sent(old)
    pace.first_token(old, decoding(20), 1.0)  # twenty sequences: a step takes 0.2 s
    pace.sent(new)
    # Half a step until it is taken in, and one that it shares.
    pace.first_token(new, decoding(21), 2.3)
    pace.ended(new, whole(1, ttft=1.3), decoding(20), 2.4)
    assert factors(pace)[0] == pytest.approx(1.0)


def test_cached_tokens_are_not_prefill() -> None:
    pace = Pace()
    one = lease("one", cached=600)
    pace.sent(one)
    pace.first_token(one, decoding(1), 0.4)
    pace.ended(one, whole(1, ttft=0.4, cached=600), decoding(0), 0.5)
    assert factors(pace)[0] == pytest.approx(1.0)


def test_a_long_answer_teaches_on_the_way() -> None:
    pace = Pace()
    one = lease("one")
    pace.sent(one)
    pace.first_token(one, decoding(1), 1.0)
    pace.progressed(one, 64, 3.0)
    assert factors(pace)[1] == 1.0
    pace.progressed(one, 401, 13.0)  # 400 tokens in 12 s where the prior says 4
    assert factors(pace)[1] > 1.3


@pytest.mark.parametrize(
    "how",
    [Ended(), Ended(failure=FailureKind.TOKEN_GAP, output_tokens=50), whole(5, prompt=100, ttft=9.0)],
    ids=["left", "failed", "too short"],
)
def test_what_says_nothing_teaches_nothing(how: Ended) -> None:
    pace = Pace()
    one = lease("one")
    pace.sent(one)
    pace.first_token(one, decoding(1), 1.0)
    pace.ended(one, how, decoding(0), 91.0)
    assert factors(pace) == pytest.approx((1.0, 1.0))


def test_several_choices_teach_nothing_of_a_token() -> None:
    pace = Pace()
    one = lease("one", n=4)
    pace.sent(one)
    pace.first_token(one, decoding(4), 1.0)
    pace.ended(one, whole(400, ttft=1.0), decoding(0), 3.0)
    assert factors(pace)[1] == 1.0

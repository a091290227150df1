"""Which cause the signs name, and that each is said with evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.core.degrading.causes import ADVICE, SENTENCES, Cause
from gateway.core.degrading.judging import judge
from gateway.core.degrading.phase import Phase
from gateway.core.degrading.signs import Signs
from gateway.core.failure import FailureKind
from gateway.core.health.device_reading import DeviceReading
from gateway.core.snapshot import Health

WELL = Signs(Health.UP, 100.0, prefill=1.0, decode=1.0)
BOTH = replace(WELL, prefill=2.0, decode=2.0, leaning=frozenset(Phase))
PREFILL = replace(WELL, prefill=2.0, leaning=frozenset((Phase.PREFILL,)))
DECODE = replace(WELL, decode=2.0, leaning=frozenset((Phase.DECODE,)))


def device(**told: object) -> DeviceReading:
    return DeviceReading(at=0.0, **told)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("signs", "cause"),
    [
        (WELL, Cause.NONE),
        (replace(WELL, prefill=None, decode=None), Cause.NONE),
        (replace(WELL, health=Health.DOWN, error="connection refused"), Cause.DEAD),
        (replace(WELL, health=Health.OPEN, failure=FailureKind.BROKEN), Cause.DEAD),
        (replace(WELL, reading=device(xid_errors=frozenset((79,)))), Cause.DEAD),
        (replace(WELL, health=Health.OPEN, failure=FailureKind.CREDENTIALS), Cause.MISCONFIGURED),
        (replace(WELL, running=2, silent_s=20.0), Cause.HUNG),
        (replace(WELL, running=2, silent_s=10.0), Cause.NONE),
        (replace(WELL, health=Health.OPEN, failure=FailureKind.FIRST_TOKEN), Cause.HUNG),
        (replace(WELL, health=Health.OPEN, failure=FailureKind.GARBAGE), Cause.GARBAGE),
        (replace(WELL, health=Health.LOADING), Cause.LOADING),
        (replace(WELL, preemptions=0.1), Cause.MEMORY),
        (replace(WELL, memory_errors=1), Cause.MEMORY),
        (replace(WELL, kv_usage=0.99, waiting=3), Cause.MEMORY),
        (replace(WELL, kv_usage=0.99, waiting=0), Cause.QUEUEING),
        (replace(WELL, kv_usage=0.5, waiting=3), Cause.QUEUEING),
        (replace(WELL, busy=0.8), Cause.QUEUEING),
        (PREFILL, Cause.COMPUTE),
        (DECODE, Cause.BANDWIDTH),
        (BOTH, Cause.CLOCK),
        (replace(PREFILL, leaning=frozenset(Phase)), Cause.CLOCK),
        (replace(BOTH, prefill=5.0, decode=1.3), Cause.COMPUTE),
        (replace(BOTH, prefill=1.3, decode=5.0), Cause.BANDWIDTH),
        (replace(DECODE, devices=2), Cause.LINK),
        (replace(BOTH, reading=device(throttled=frozenset(("thermal",)))), Cause.THERMAL),
        (replace(PREFILL, reading=device(throttled=frozenset(("hw_slowdown",)))), Cause.THERMAL),
        (replace(BOTH, reading=device(throttled=frozenset(("power_brake",)))), Cause.POWER),
        (replace(BOTH, reading=device(sm_clock_mhz=700, max_sm_clock_mhz=2400, temperature_c=50.0)), Cause.POWER),
        (replace(BOTH, reading=device(sm_clock_mhz=2300, max_sm_clock_mhz=2400, temperature_c=50.0)), Cause.CLOCK),
        (replace(DECODE, reading=device(link_gbps=13.0, max_link_gbps=200.0)), Cause.LINK),
        (replace(BOTH, foreign_running=2, foreign=0.3), Cause.FOREIGN),
        (replace(WELL, foreign_running=2, foreign=0.3), Cause.NONE),
        (replace(WELL, health=Health.OPEN, failure=FailureKind.SERVER), Cause.UNKNOWN),
    ],
)
def test_the_first_rule_that_holds_names_the_cause(signs: Signs, cause: Cause) -> None:
    verdict = judge(signs)
    assert verdict.cause is cause
    assert bool(verdict.evidence) == (cause is not Cause.NONE)


def test_a_power_limit_that_slows_nothing_is_normal() -> None:
    """Many run their 3090s at 275 W: the bit is always set."""
    capped = device(throttled=frozenset(("power_cap",)), sm_clock_mhz=1500, max_sm_clock_mhz=2100, temperature_c=75.0)
    assert judge(replace(WELL, reading=capped)).cause is Cause.NONE
    assert judge(replace(BOTH, reading=capped)).cause is Cause.POWER


def test_what_a_device_does_not_tell_is_neither_normal_nor_an_alarm() -> None:
    assert judge(replace(WELL, reading=device())).cause is Cause.NONE
    assert judge(replace(BOTH, reading=device())).cause is Cause.CLOCK


def test_the_next_likely_cause_is_named_too() -> None:
    both = replace(DECODE, preemptions=0.2, busy=0.9)
    assert (judge(both).cause, judge(both).runner_up) == (Cause.MEMORY, Cause.BANDWIDTH)
    assert judge(DECODE).runner_up is Cause.UNKNOWN


def test_every_cause_has_its_words() -> None:
    assert set(SENTENCES) == set(ADVICE) == set(Cause)

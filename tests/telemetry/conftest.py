from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gateway.core.boundary import Label
from gateway.core.decision import Candidate, Decision, Trace, Verdict
from gateway.core.footprint import Footprint
from gateway.core.reasons import Reason
from gateway.core.request import Estimate, Hit, Request

FOOTPRINT = Footprint(
    prompt=9000,
    prompt_high=9400,
    cached=8000,
    uncached=1000,
    output=512,
    output_mean=300,
    max_tokens=None,
    kv=9920,
    kv_bytes=1 << 30,
)


def make_request(**changes: Any) -> Request:
    request = Request(
        id="r-1",
        model="code",
        client="agents",
        klass="interactive",
        label=Label.INTERNAL,
        arrival=100.0,
        deadline=160.0,
        estimates={"code": Estimate(9000, 9400, 300, 512)},
        stream=True,
        needs=frozenset(("tools",)),
        hits={"rig": Hit(0.9, 0.95)},
    )
    return replace(request, **changes)


def make_admit(**changes: Any) -> Decision:
    decision = Decision(
        request="r-1",
        verdict=Verdict.ADMIT,
        reason=Reason.ADMITTED,
        now=100.5,
        roll=0.25,
        backend="rig",
        model="code",
        served_as="org/code",
        footprint=FOOTPRINT,
        predicted_ttft=0.75,
        predicted_tpot=0.02,
        trace=Trace(
            (
                Candidate("spark", "code", terms=(("prefill", 4.2), ("harm", 0.1)), total=4.3, footprint=FOOTPRINT),
                Candidate("rig", "code", terms=(("prefill", 0.7), ("harm", 0.05)), total=0.75, footprint=FOOTPRINT),
                Candidate("p40", "code", reason=Reason.WINDOW_TOO_SMALL, limit=8192, needed=9712),
            )
        ),
    )
    return replace(decision, **changes)


@pytest.fixture
def request_() -> Request:
    return make_request()


@pytest.fixture
def admit() -> Decision:
    return make_admit()


Maker = Callable[..., Any]

"""Under 130 % load: no engine preempts or is asked for more than its pool, and twice as many are served well."""

from __future__ import annotations

from gateway.sim.trace_file import read_trace
from tests.sim.overload import TRACES, measure

CAPACITY = 0.98
"""Requests a second, as `python -m tests.sim.overload` finds it for this trace."""


def test_a_queue_in_the_gateway_at_least_doubles_goodput_under_overload() -> None:
    """A short one: the longer it lasts, the further apart they are."""
    rows = read_trace(TRACES / "mooncake-conversation.csv")
    kvgate, bound = (measure(name, rows, 1.3 * CAPACITY, 120.0) for name in ("kvgate", "bound on arrival"))
    assert kvgate.preemptions == 0
    assert kvgate.kv_asked <= 1.0
    assert bound.kv_asked > 1.5, "there was no overload, so nothing was shown"
    assert kvgate.goodput >= 0.45
    assert kvgate.goodput >= 2.0 * bound.goodput

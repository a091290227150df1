"""What deciding costs: a gateway does it for each arrival, and for sixteen waiting requests whenever one ends."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from gateway.core.decide import decide
from gateway.core.decision import Verdict
from gateway.core.plan import QueueLimits, Route
from gateway.core.pump import pump
from gateway.core.snapshot import Snapshot
from tests.core.fleet import NOW, hit, plan, request, snapshot, view

DECIDE_BUDGET = 100e-6
PUMP_BUDGET = 3e-3
SLACK = 2.0
"""For machines that are slow or shared."""

POLICY = plan(Route("m", "m", ttft=5.0, tpot=0.08), queue=QueueLimits(scan=16))


def fleet(**more: int) -> Snapshot:
    """Eight working backends, some of them busy."""
    return snapshot(
        *(
            view(f"b{i}", running=i % 4, reserved=5000 * (i % 4), decoding=i % 4, resident=4000 * (i % 4), **more)
            for i in range(8)
        )
    )


def seconds_each(action: Callable[[], object], rounds: int, batch: int) -> float:
    """Median CPU seconds of one call, over `rounds` batches."""
    took = []
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(batch):
            action()
        took.append((time.process_time() - start) / batch)
    return statistics.median(took)


def test_one_decision_among_eight_backends_with_its_trace() -> None:
    asked = request(prompt=4000, high=4300, output=300, hits={"b2": hit(0.5), "b4": hit(0.3)}, placement=99)
    now = fleet()
    decision = decide(POLICY, asked, now, NOW, 0.5)
    assert decision.verdict is Verdict.ADMIT
    assert all(candidate.footprint is not None for candidate in decision.trace.candidates)
    assert seconds_each(lambda: decide(POLICY, asked, now, NOW, 0.5), 60, 20) < DECIDE_BUDGET * SLACK


def test_a_pump_of_sixteen_waiting_requests() -> None:
    queue = [request(f"r{i}", prompt=4000, output=300) for i in range(16)]
    full = fleet(slots=0)
    assert {decision.verdict for decision in pump(POLICY, queue, full, NOW, lambda: 0.5)} == {Verdict.WAIT}
    assert seconds_each(lambda: pump(POLICY, queue, full, NOW, lambda: 0.5), 30, 1) < PUMP_BUDGET * SLACK
    idle = fleet(slots=8)
    assert seconds_each(lambda: pump(POLICY, queue, idle, NOW, lambda: 0.5), 30, 1) < PUMP_BUDGET * SLACK

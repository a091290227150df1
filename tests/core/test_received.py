from __future__ import annotations

from gateway.core.decision import Candidate, Decision, Trace, Verdict
from gateway.core.look import Look
from gateway.core.reasons import Reason
from gateway.core.received import Received


def test_device_seconds_add_up_and_are_put_right() -> None:
    received = Received()
    received.add("interactive", "ana", 3.0)
    received.add("batch", "ana", 1.0)
    received.add("interactive", "bob", 2.0)
    received.add("interactive", "ana", -1.5)
    assert received.classes == {"interactive": 3.5, "batch": 1.0}
    assert received.clients == {("batch", "ana"): 1.0, ("interactive", "bob"): 2.0, ("interactive", "ana"): 1.5}


def test_sums_of_so_many_clients_only_are_kept_those_served_last() -> None:
    received = Received()
    for number in range(3000):
        received.add("default", f"c{number}", 1.0)
    assert len(received.clients) == 1024
    assert ("default", "c2999") in received.clients
    assert received.classes == {"default": 3000.0}


def test_a_look_keeps_what_was_weighed_when_the_next_one_weighs_nothing() -> None:
    found = (Candidate("a", "m", reason=Reason.KV_FULL), Candidate("b", "m"), Candidate("a", "n", reason=Reason.DOWN))
    weighed = Look.of(Decision("r", Verdict.WAIT, Reason.WORTH_WAITING, 5.0, 0.5, trace=Trace(found)))
    assert weighed.by_backend == {"a": Reason.KV_FULL, "b": None}
    later = Look.of(Decision("r", Verdict.WAIT, Reason.QUEUED, 9.0, 0.5), weighed)
    assert later == Look(9.0, Reason.QUEUED, weighed.backends, 5.0)
    assert Look.of(Decision("r", Verdict.WAIT, Reason.QUEUED, 9.0, 0.5)) == Look(9.0, Reason.QUEUED)

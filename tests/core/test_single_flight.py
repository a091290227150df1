from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.core.decision import Decision, Verdict
from gateway.core.experience import Experience
from gateway.core.lease import Ended, Lease
from gateway.core.ledger import Totals
from gateway.core.plan import QueueLimits
from gateway.core.prefix.chain import Chain, fingerprint
from gateway.core.pump import pump
from gateway.core.reasons import Reason
from gateway.core.request import Hit, Request
from gateway.core.snapshot import BackendView, Snapshot
from tests.core.fleet import NOW, plan, request, snapshot, view

START = b"a long context that many agents share. " * 3000
TOKENS = 30_000


class Gateway:
    """A queue of requests with their prompts, the beliefs about prefixes, and the pump."""

    def __init__(self, *views: BackendView) -> None:
        self.experience = Experience()
        self.fleet = snapshot(*views)
        self.chains: dict[str, Chain] = {}
        self.queue: list[Request] = []

    def arrive(self, name: str, start: bytes = START, **more: int) -> None:
        self.chains[name] = fingerprint([start, name.encode()], [len(start), len(start) + len(name)])
        self.queue.append(request(name, prompt=TOKENS, output=50, stream=True, **more))  # type: ignore[arg-type]

    def look(self, **limits: int) -> dict[str, Decision]:
        """One look at the queue; what was admitted leaves it."""

        def refresh(asked: Request) -> Request:
            hits = self.experience.hits(self.chains[asked.id], ("m",), self.fleet.views)
            return replace(asked, hits=hits)

        def taken(asked: Request, decision: Decision) -> None:
            chosen = self.fleet.view(decision.backend or "")
            assert chosen is not None
            self.experience.expects(asked, self.chains[asked.id], decision, chosen)

        policy = plan(queue=QueueLimits(**limits))
        decisions = pump(policy, self.queue, self.fleet, NOW, lambda: 0.0, refresh, None, taken)
        self.experience.leaders.settled()
        gone = {decision.request for decision in decisions if decision.verdict is Verdict.ADMIT}
        self.queue = [asked for asked in self.queue if asked.id not in gone]
        return {decision.request: decision for decision in decisions}

    def send(self, asked: Request, decision: Decision, **more: bool) -> Lease:
        """What follows from an admission."""
        chosen = self.fleet.view(decision.backend or "")
        assert chosen is not None
        asked = replace(asked, **more)  # type: ignore[arg-type]
        offer = chosen.offers[0]
        lease = Lease(f"{asked.id}.0", asked, self.chains[asked.id], decision, chosen.name, offer, chosen.block, NOW)
        self.experience.sent(lease, chosen)
        return lease

    def hit(self, name: str, backend: str = "a") -> Hit | None:
        return self.experience.hits(self.chains[name], ("m",), self.fleet.views).get(backend)


def roomy(name: str = "a", **more: object) -> BackendView:
    """A backend with room for everything, and no bound on queued prefill."""
    return view(name, slots=64, pool=2_000_000, queued_prefill=1000.0, **more)  # type: ignore[arg-type]


def verdicts(decisions: dict[str, Decision]) -> list[Verdict]:
    return [decision.verdict for decision in decisions.values()]


def test_of_equals_in_one_look_one_goes() -> None:
    gateway = Gateway(roomy())
    for name in ("r0", "r1", "r2"):
        gateway.arrive(name)
    assert verdicts(gateway.look()) == [Verdict.ADMIT, Verdict.WAIT, Verdict.WAIT]
    assert not gateway.experience.leaders


def test_those_who_start_otherwise_go_too() -> None:
    gateway = Gateway(roomy())
    gateway.arrive("r0")
    gateway.arrive("r1", b"a context of its own, as long as the other one. " * 3000)
    assert verdicts(gateway.look()) == [Verdict.ADMIT, Verdict.ADMIT]


def test_a_second_idle_backend_gets_a_leader_of_its_own() -> None:
    gateway = Gateway(roomy("a"), roomy("b"))
    for name in ("r0", "r1", "r2"):
        gateway.arrive(name)
    decisions = gateway.look()
    assert verdicts(decisions) == [Verdict.ADMIT, Verdict.ADMIT, Verdict.WAIT]
    assert {decisions["r0"].backend, decisions["r1"].backend} == {"a", "b"}
    reasons = [candidate.reason for candidate in decisions["r2"].trace.candidates]
    assert reasons == [Reason.PREFIX_IN_PREFILL, Reason.PREFIX_IN_PREFILL]


def test_engines_that_share_no_prefix_get_all() -> None:
    gateway = Gateway(roomy(shares_prefix=False))
    for name in ("r0", "r1", "r2"):
        gateway.arrive(name)
    assert verdicts(gateway.look()) == [Verdict.ADMIT] * 3


def test_followers_go_when_the_leader_has_its_first_token() -> None:
    gateway = Gateway(roomy())
    gateway.arrive("r0")
    gateway.arrive("r1")
    leader = gateway.queue[0]
    lease = gateway.send(leader, gateway.look()["r0"])
    assert gateway.look()["r1"].verdict is Verdict.WAIT
    gateway.experience.first_token(lease, Totals(), NOW + 6.0)
    decision = gateway.look()["r1"]
    assert decision.verdict is Verdict.ADMIT
    assert decision.footprint is not None
    assert decision.footprint.cached > 0.8 * TOKENS


def test_a_leader_that_fails_is_followed_by_one_of_its_followers() -> None:
    gateway = Gateway(roomy())
    for name in ("r0", "r1", "r2"):
        gateway.arrive(name)
    leader = gateway.queue[0]
    lease = gateway.send(leader, gateway.look()["r0"])
    assert verdicts(gateway.look()) == [Verdict.WAIT, Verdict.WAIT]
    gateway.experience.learn(lease, Ended(), None, Totals(), NOW)
    assert verdicts(gateway.look()) == [Verdict.ADMIT, Verdict.WAIT]


def test_a_leader_whose_answer_comes_whole_is_taken_to_have_read_its_prompt_in_time() -> None:
    gateway = Gateway(roomy())
    gateway.arrive("r0")
    gateway.arrive("r1")
    leader = gateway.queue[0]
    lease = gateway.send(leader, gateway.look()["r0"], stream=False)
    waits = gateway.hit("r1")
    assert waits is not None
    assert (waits.share, waits.ready) == (0.0, pytest.approx(NOW + 6.0))
    gateway.experience.read_unseen(NOW + 9.1)
    found = gateway.hit("r1")
    assert found is not None
    assert (round(found.share, 2), found.pending) == (1.0, 0.0)
    gateway.experience.first_token(lease, Totals(), NOW + 20.0)
    gateway.experience.learn(lease, Ended(completed=True, output_tokens=50), None, Totals(), NOW + 20.0)
    assert not gateway.experience.leaders


def test_an_engine_that_was_found_to_keep_no_prefixes_makes_nobody_wait() -> None:
    gateway = Gateway(roomy())
    for number in range(40):
        gateway.arrive(f"w{number}")
        asked = gateway.queue[-1]
        lease = gateway.send(asked, gateway.look()[asked.id])
        gateway.experience.first_token(lease, Totals(), NOW)
        ended = Ended(completed=True, prompt_tokens=TOKENS, output_tokens=50, cached_tokens=0)
        gateway.experience.learn(lease, ended, None, Totals(), NOW)
    gateway.arrive("r0", b"another context. " * 6000)
    gateway.arrive("r1", b"another context. " * 6000)
    assert verdicts(gateway.look()) == [Verdict.ADMIT, Verdict.ADMIT]


def test_however_many_follow_the_scan_goes_on_behind_them() -> None:
    gateway = Gateway(roomy())
    for number in range(40):
        gateway.arrive(f"r{number}")
    gateway.arrive("other", b"a context of its own. " * 5000)
    decisions = gateway.look(scan=16)
    assert decisions["other"].verdict is Verdict.ADMIT
    weighed = [name for name, decision in decisions.items() if decision.trace.candidates]
    assert weighed == ["r0", "r1", "r2", "r3", "r4", "other"]
    assert len(decisions) == 41


def test_one_that_has_aged_is_weighed_for_itself_and_goes() -> None:
    gateway = Gateway(roomy())
    for number in range(8):
        gateway.arrive(f"r{number}")
    gateway.arrive("old", waited=16)
    assert gateway.look()["old"].verdict is Verdict.ADMIT


def test_a_backend_closed_to_all_still_ends_the_scan() -> None:
    gateway = Gateway(roomy())
    gateway.arrive("r0")
    gateway.send(gateway.queue[0], gateway.look()["r0"])
    for number in range(1, 10):
        gateway.arrive(f"r{number}")
    full = replace(gateway.fleet.views[0], slots=1, running=1, reserved=TOKENS)
    gateway.fleet = Snapshot(NOW, (full,))
    assert list(gateway.look()) == ["r1"]

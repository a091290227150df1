"""Whose turn it is, on any fleet and under any flood: nobody starves, keys are served alike, the idle come soon."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.decision import Decision
from gateway.core.estimators.prompt_tokens import TextCounts
from gateway.core.lease import Ended, Lease
from gateway.core.snapshot import Snapshot
from gateway.core.waiting import PROMOTED
from gateway.sim.engine_model import EngineModel
from gateway.sim.events import Arrival
from gateway.sim.gateway_desk import Desk
from gateway.sim.gateway_policy import GatewayPolicy
from gateway.sim.outcome import Simulation
from gateway.sim.virtual import simulate
from tests.sim.gateway_traffic import anybody, config, foreseen, ledger_is_empty, single, tiny_engines

AGING = 1.0
QUEUE = f"""
classes:
  interactive: {{weight: 100}}
  default: {{weight: 4}}
  batch: {{weight: 0.01}}
queue: {{wait: 10m, aging: {AGING}s, length: 1000}}
"""
BLOCK = 16


@dataclass(frozen=True, slots=True)
class Fleet:
    """Equal engines: how many, and their pool, slots and token budget."""

    engines: int
    blocks: int
    slots: int
    budget: int

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"e{at}" for at in range(self.engines))

    def made(self) -> dict[str, EngineModel]:
        shape = {"blocks": self.blocks, "seqs": self.slots, "budget": self.budget}
        return tiny_engines(self.names, **shape)


FLEETS = st.builds(
    Fleet, st.integers(1, 3), st.sampled_from([33, 64, 160]), st.sampled_from([1, 2, 5]), st.sampled_from([16, 64, 256])
)
SLOTS_BOUND = st.builds(Fleet, st.integers(1, 3), st.just(160), st.integers(1, 5), st.sampled_from([16, 64, 256]))
"""Whoever finds a slot finds room too."""


class _Counting(Desk):
    """A desk that keeps what each lease was charged, and what it took in the end; and who passed one in front."""

    def _admit(self, decision: Decision, snapshot: Snapshot) -> bool:
        front = self.waiting._front
        if front is not None and front in self.waiting and front != decision.request:
            self.passed.setdefault(decision.request, front)  # type: ignore[attr-defined]
        return super()._admit(decision, snapshot)

    def settle(self, lease: Lease, ended: Ended, counts: TextCounts, *, linger: float = 0.0) -> None:
        super().settle(lease, ended, counts, linger=linger)
        if lease.service is not None:
            took = lease.service.actual(ended, self.now - lease.granted_at)
            self.took.append((self.now, lease, took))  # type: ignore[attr-defined]


class _Counted(GatewayPolicy):
    desk_of = _Counting


def play(arrivals: list[Arrival], fleet: Fleet, *, known: bool = False) -> tuple[_Counted, Simulation]:
    """The session of an arrival names its class and client."""

    def caller(arrival: Arrival) -> Any:
        klass, client = arrival.session.split("/")
        return replace((foreseen if known else anybody)(arrival), klass=klass, client=client)

    text = config(dict.fromkeys(fleet.names, "dgx-spark"), more=QUEUE)
    policy = _Counted.from_yaml(text, caller)
    policy.desk.took, policy.desk.passed = [], {}  # type: ignore[attr-defined]
    return policy, simulate(arrivals, fleet.made(), policy)


@st.composite
def floods(draw: Any) -> list[Arrival]:
    """More than is served at once, mostly of the class that goes before the others; in bursts, or as it trickles in."""
    arrivals, now = [], 0.0
    gaps = draw(st.sampled_from([[0.0], [0.0, 0.05], [0.0, 0.0, 0.0, 1.5], [0.02, 0.1]]))
    large = draw(st.sampled_from([60, 200, 400]))
    for at in range(draw(st.integers(30, 110))):
        now += draw(st.sampled_from(gaps))
        klass = draw(st.sampled_from(["interactive"] * 12 + ["default", "batch"]))
        prompt = draw(st.sampled_from([20, 40, large]))
        whose = f"{klass}/{draw(st.sampled_from('abc'))}"
        arrivals.append(Arrival(now, single(f"r{at}", prompt, draw(st.sampled_from([2, 20, 60]))), session=whose))
    return arrivals


@settings(deadline=None, max_examples=15)
@given(floods(), FLEETS)
def test_nobody_waits_past_the_starvation_bound(arrivals: list[Arrival], fleet: Fleet) -> None:
    """Once it has aged, a request sees 20 dispatches at most for itself and each older one that still waits.

    One dispatch in 20 is the oldest request's. While that one waits for room, others are dispatched elsewhere, but no
    longer than it takes until what runs has ended (twice, since it may come to prefer another backend meanwhile). What
    has not aged yet is no matter of starvation.
    """
    policy, run = play(arrivals, fleet)
    assert all(outcome.finish_reason == "stop" for outcome in run.outcomes)
    assert ledger_is_empty(policy, fleet.names, 1e6)
    passed: dict[str, str] = policy.desk.passed  # type: ignore[attr-defined]
    starts = [(lease.granted_at, lease.request.arrival, lease.request.id) for lease in policy.granted]
    granted = {name: at for at, _, name in starts}
    for place, (_, arrival, name) in enumerate(starts):
        aged = arrival + AGING
        between = [other for at, other, who in starts[:place] if at > aged and who not in passed]
        older = sum(other <= arrival for other in between)
        assert len(between) <= PROMOTED * (older + 1), (name, older, len(between))
    took: list[tuple[float, Lease, float]] = policy.desk.took  # type: ignore[attr-defined]
    longest = max(at - lease.granted_at for at, lease, _ in took)
    for who, front in passed.items():
        assert granted[front] - granted[who] <= 2 * longest, (who, front)


@st.composite
def backlogs(draw: Any) -> list[Arrival]:
    """Two keys that ask for everything at once, each for requests of its own sizes."""
    sizes = st.tuples(st.integers(1, 300), st.integers(1, 60))
    arrivals = []
    for key in "ab":
        kinds = draw(st.lists(sizes, min_size=1, max_size=3))
        asked = [single(f"{key}{at}", *kinds[at % len(kinds)]) for at in range(draw(st.integers(15, 40)))]
        arrivals += [Arrival(0.0, each, session=f"default/{key}") for each in asked]
    return arrivals


@settings(deadline=None, max_examples=15)
@given(backlogs(), SLOTS_BOUND)
def test_two_keys_that_always_wait_are_served_alike(arrivals: list[Arrival], fleet: Fleet) -> None:
    """In device seconds, as charged at dispatch and put right at the end.

    The gap stays within three times the dearest request (two as in the paper on virtual token counters, one for the
    dispatch that goes to the oldest), and what the answers that were under way at once turned out to cost more or less.
    """
    policy, _ = play(arrivals, fleet)
    took: list[tuple[float, Lease, float]] = policy.desk.took  # type: ignore[attr-defined]
    charges = {lease.id: lease.service.predicted for lease in policy.granted if lease.service is not None}
    dearest = max(max(charges.values()), *(cost for _, _, cost in took))
    wrong = max(abs(cost - charges[lease.id]) for _, lease, cost in took)
    left = Counter(lease.request.client for lease in policy.granted)
    got = Counter[str]()
    events = [(lease.granted_at, 0, lease, charges[lease.id]) for lease in policy.granted]
    events += [(at, 1, lease, cost - charges[lease.id]) for at, lease, cost in took]
    for _, ended, lease, service in sorted(events, key=lambda event: event[:2]):
        client = lease.request.client
        got[client] += service  # type: ignore[assignment]
        if not ended:
            left[client] -= 1
        if not all(left.values()):
            break
        gap = abs(got["a"] - got["b"])
        assert gap <= 3 * dearest + 2 * wrong * fleet.slots * fleet.engines, (gap, dearest, wrong)


@settings(deadline=None, max_examples=15)
@given(backlogs(), SLOTS_BOUND, st.floats(0.1, 3.0), st.booleans(), st.integers(1, 300))
def test_a_key_that_was_idle_is_next_or_next_but_one(
    arrivals: list[Arrival], fleet: Fleet, at: float, new: bool, prompt: int
) -> None:
    """Whether it is new or was served before, no more than the others since: idling earned nothing and costs nothing.

    Once requests have aged, the one dispatch in 20 that goes to the oldest may come before it too.
    """
    if not new:
        arrivals = [Arrival(0.0, single("before", 1, 1), session="default/c"), *arrivals]
    come = Arrival(at, single("back", prompt, 10), session="default/c")
    policy, _ = play([*arrivals, come], fleet)
    place = [lease.request.id for lease in policy.granted].index("back")
    earlier = {lease.request.client for lease in policy.granted if lease.granted_at <= at}
    before = [lease.request.id for lease in policy.granted[:place] if lease.granted_at > at]
    if earlier >= {"a", "b"}:
        assert len(before) <= (1 if policy.granted[place].granted_at < AGING else 2), before

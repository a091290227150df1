"""What must hold for every fleet, request and moment."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.admission import usable_pool, with_admitted
from gateway.core.boundary import Label
from gateway.core.decide import decide
from gateway.core.decision import Verdict
from gateway.core.demand import Demands
from gateway.core.plan import ClassPolicy, QueueLimits, Route
from gateway.core.pump import pump
from gateway.core.reasons import Reason
from gateway.core.request import Consent, Hit, Request
from gateway.core.snapshot import BackendView, Health
from tests.core.fleet import NOW, offer, plan, request, snapshot, view
from tests.core.gateway_model import GatewayModel

CLASSES = {
    name: ClassPolicy(name, kv_ceiling=ceiling) for name, ceiling in (("default", 0.9), ("batch", 0.6), ("top", 1.0))
}
POLICY = plan(Route("m", "m", fallback=("n",)), classes=CLASSES)
NAMES = "abcd"


def some_view(rng: Random, name: str) -> BackendView:
    slots = rng.randint(1, 8)
    running = rng.choice([0, rng.randint(0, slots)])
    pool = rng.choice([0, 4_000, 20_000, 100_000])
    models = rng.choice([("m",), ("m",), ("n",), ("m", "n"), ("o",)])
    return view(
        name,
        offers=tuple(offer(model, window=rng.choice([4096, 32_768])) for model in models),
        slots=slots,
        pool=pool,
        block=rng.choice([1, 16, 528]),
        health=rng.choice([*Health, *[Health.UP] * 12]),
        clearance=rng.choice(list(Label)),
        shares_prefix=rng.random() < 0.5,
        running=running,
        reserved=rng.randint(0, pool) if running else 0,
        foreign=rng.choice([0, 500]),
        decoding=rng.randint(0, running),
        backlog=rng.choice([0.0, 1.0, 3.0]) if running else 0.0,
        overcommitted=running > 0 and rng.random() < 0.1,
    )


def some_fleet(rng: Random) -> tuple[BackendView, ...]:
    return tuple(some_view(rng, name) for name in NAMES)


def some_request(rng: Random, id: str = "r") -> Request:
    prompt = int(10 ** rng.uniform(0, 4.6))
    hit_names = [name for name in NAMES if rng.random() < 0.4]
    return request(
        id,
        prompt=prompt,
        high=int(prompt * rng.uniform(1.0, 1.3)),
        output=rng.randint(0, 3000),
        output_high=rng.randint(3000, 6000),
        max_tokens=rng.choice([None, rng.randint(1, 40_000)]),
        n=rng.choice([1, 1, 1, 2, 3]),
        label=rng.choice([Label.PUBLIC, *Label]),
        klass=rng.choice(sorted(CLASSES)),
        consent=rng.choice(list(Consent)),
        tried=frozenset(name for name in NAMES if rng.random() < 0.2),
        waited=rng.choice([0.0, 10.0, 20.0, 59.0]),
        hits={name: Hit(rng.random(), rng.random(), rng.random() < 0.5) for name in hit_names},
        placement=rng.choice([0, rng.getrandbits(64)]),
    )


RANDOMS = st.integers(0, 2**48).map(Random)
"""Seeds, since drawing a whole fleet value by value takes longer than deciding."""


@settings(deadline=None, max_examples=300)
@given(RANDOMS)
def test_an_admission_keeps_every_promise(rng: Random) -> None:
    fleet, asked = some_fleet(rng), some_request(rng)
    decision = decide(POLICY, asked, snapshot(*fleet), NOW, rng.random())
    if decision.verdict is not Verdict.ADMIT:
        assert decision.backend is None
        return
    footprint, chosen = decision.footprint, snapshot(*fleet).view(decision.backend or "")
    assert footprint is not None
    assert chosen is not None
    assert asked.label <= chosen.backend.clearance
    assert chosen.name not in asked.tried
    assert chosen.health in (Health.UP, Health.TRIAL)
    assert decision.model == "m" or asked.consent is Consent.ANY
    assert not chosen.overcommitted
    alone = chosen.running == 0
    assert alone or chosen.running + asked.n <= chosen.slots
    if chosen.pool:
        held = chosen.reserved + chosen.foreign + footprint.kv
        assert held <= (usable_pool(chosen) if alone else chosen.pool * chosen.headroom)
    assert footprint.kv > 0
    assert footprint.cached < footprint.prompt
    if footprint.max_tokens is not None:
        assert 0 < footprint.max_tokens <= (asked.max_tokens or 32_768)


@settings(deadline=None, max_examples=300)
@given(RANDOMS)
def test_the_trace_is_complete_and_the_verdict_follows_from_it(rng: Random) -> None:
    fleet, asked = some_fleet(rng), some_request(rng)
    decision = decide(POLICY, asked, snapshot(*fleet), NOW, rng.random())
    candidates = decision.trace.candidates
    assert [c.backend for c in candidates if c.tier == 0] == list(NAMES)
    open_ = [c for c in candidates if c.reason is None]
    if decision.verdict is Verdict.ADMIT:
        assert decision.backend in [c.backend for c in open_]
        assert (decision.predicted_ttft or 0.0) > 0.0
    elif decision.reason is Reason.WORTH_WAITING:
        closed = min(c.total for c in candidates if c.reason is not None and c.total is not None)
        assert all(c.total is not None and c.total > closed for c in open_)
    else:
        assert open_ == []
    if decision.verdict is Verdict.REJECT:
        assert (decision.limit is not None) == (decision.reason is Reason.CONTEXT_TOO_LONG)


@settings(deadline=None, max_examples=300)
@given(RANDOMS)
def test_more_capacity_never_admits_fewer(rng: Random) -> None:
    """On one backend; among several, more room on a good one may rightly make a request wait for it."""
    alone, asked = some_view(rng, "a"), some_request(rng)
    more = rng.randint(0, 100_000) * alone.block if alone.pool else 0
    roomier = replace(alone, slots=alone.slots + rng.randint(0, 8), pool=alone.pool + more)
    before = decide(POLICY, asked, snapshot(alone), NOW, 0.0)
    after = decide(POLICY, asked, snapshot(roomier), NOW, 0.0)
    if before.verdict is Verdict.ADMIT:
        assert after.verdict is Verdict.ADMIT
    if before.verdict is Verdict.WAIT:
        assert after.verdict is not Verdict.REJECT


@settings(deadline=None, max_examples=200)
@given(RANDOMS, st.sampled_from(["expected", "worst_case"]))
def test_what_is_asked_of_a_kind_is_what_is_asked_of_each(rng: Random, reserve: str) -> None:
    asked, route = some_request(rng), Route("m", "m", context=rng.choice([None, 8192]))
    policy = plan(route, reserve=reserve)
    together = Demands(policy, asked, route)
    for _ in range(6):
        seen = some_view(rng, "a")
        for served in seen.offers:
            assert together.on(seen, served) == Demands(policy, asked, route).on(seen, served)


@settings(deadline=None, max_examples=200)
@given(RANDOMS)
def test_one_backend_more_never_turns_a_yes_into_a_no(rng: Random) -> None:
    fleet, asked, extra = some_fleet(rng), some_request(rng), some_view(rng, "e")
    before = decide(POLICY, asked, snapshot(*fleet), NOW, 0.0)
    after = decide(POLICY, asked, snapshot(*fleet, extra), NOW, 0.0)
    if before.verdict is Verdict.ADMIT:
        assert after.verdict is not Verdict.REJECT


@settings(deadline=None, max_examples=150)
@given(RANDOMS)
def test_a_whole_pump_overfills_nothing(rng: Random) -> None:
    fleet = some_fleet(rng)
    queue = [some_request(rng, f"r{i}") for i in range(rng.randint(1, 8))]
    after = snapshot(*fleet)
    for decision in pump(POLICY, queue, after, NOW, rng.random):
        after = with_admitted(after, decision)
    for was, now in zip(fleet, after.views, strict=True):
        if now == was:
            continue
        most = max(one.n for one in queue)
        assert now.running <= now.slots or (was.running == 0 and now.running <= most)
        if now.pool:
            assert now.reserved + now.foreign <= usable_pool(now)


@settings(deadline=None, max_examples=15)
@given(RANDOMS)
def test_nobody_starves(rng: Random) -> None:
    """A request nearly as large as the pool gets in under a stream of small ones that would keep the backend full."""
    policy = plan(Route("m", "m"), classes=CLASSES, queue=QueueLimits(length=10_000, wait=1e9, aging=5.0))
    gateway = GatewayModel(policy, (view("a", pool=50_000, slots=8, offers=(offer("m", window=65_536),)),))
    gateway.at(NOW, tuple(request(f"f{i}", prompt=4500, output=300, wait=1e9) for i in range(8)))
    klass = rng.choice(["top", "batch"])
    gateway.at(NOW, (request("big", prompt=rng.randint(20_000, 44_000), output=100, klass=klass, wait=1e9),))
    assert "big" not in gateway.started
    now = NOW
    for i in range(260):
        if "big" in gateway.started:
            break
        # Four times a second, more than the backend can do.
        now = NOW + 0.25 * (i + 1)
        small = request(
            f"s{i}",
            prompt=rng.randint(100, 4000),
            output=rng.randint(10, 400),
            client=f"c{i % 3}",
            klass=rng.choice(["top", "default"]),
            wait=1e9,
        )
        gateway.at(now, (replace(small, arrival=now),))
    assert "big" in gateway.started


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.tuples(st.integers(1, 30_000), st.integers(0, 600), st.sampled_from("xyz"), st.floats(0, 1)), max_size=40
    )
)
def test_every_request_ends_and_the_ledger_returns_to_zero(arrivals: list[tuple[int, int, str, float]]) -> None:
    policy = plan(Route("m", "m"), queue=QueueLimits(wait=1e9, length=1000))
    gateway = GatewayModel(policy, (view("a", pool=40_000, slots=4), view("b", pool=20_000, slots=2)))
    now = NOW
    for i, (prompt, output, client, gap) in enumerate(arrivals):
        now += gap
        asked = request(f"r{i}", prompt=prompt, output=output, client=client, wait=1e9)
        gateway.at(now, (replace(asked, arrival=now),))
    for _ in range(4000):
        if not gateway.ledger and not len(gateway.waiting):
            break
        now += 1.0
        gateway.at(now)
    assert len(gateway.waiting) == 0
    assert len(gateway.started) + len(gateway.gone) == len(arrivals)
    for name in "ab":
        totals = gateway.ledger.totals(name, now)
        assert (totals.running, totals.reserved, totals.decoding, totals.resident, totals.backlog) == (0, 0, 0, 0, 0.0)

from __future__ import annotations

from dataclasses import is_dataclass, replace

import pytest

from gateway.core.boundary import Label
from gateway.core.bounds import LimitedBy
from gateway.core.filters import ABLE, ROOM, WORKING
from gateway.core.filters.class_ceiling import ClassCeiling
from gateway.core.filters.fits_context import FitsContext
from gateway.core.filters.healthy import Healthy
from gateway.core.filters.keeps_pace import KeepsPace
from gateway.core.filters.kv_headroom import KvHeadroom
from gateway.core.filters.open_backlog import OpenBacklog
from gateway.core.filters.scarce_kv import ScarceKv
from gateway.core.filters.serves_model import ServesModel
from gateway.core.filters.within_boundary import WithinBoundary
from gateway.core.filters.within_limit import WithinLimit
from gateway.core.plan import ClassPolicy, Plan, Route
from gateway.core.reasons import Reason
from gateway.core.request import Request
from gateway.core.snapshot import BackendView, Health
from gateway.core.weighing import Ask, Weighing
from tests.core.fleet import NOW, hit, offer, plan, request, view


def weighing(
    seen: BackendView, asked: Request | None = None, policy: Plan | None = None, *, fitted: bool = True
) -> Weighing:
    policy = policy or plan()
    made = Weighing(Ask(policy, asked or request(), policy.routes["m"], NOW), seen, "m", 0)
    if fitted:
        assert ServesModel().check(made) is None
        assert FitsContext().check(made) is None
        made.fit()
    return made


def test_the_boundary_is_looked_at_before_anything_else() -> None:
    assert isinstance(ABLE[0], WithinBoundary)


def test_filters_are_values_with_a_file_each() -> None:
    for rule in (*ABLE, *WORKING, *ROOM):
        assert is_dataclass(rule)
        snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in type(rule).__name__).lstrip("_")
        assert type(rule).__module__ == f"gateway.core.filters.{snake}"


@pytest.mark.parametrize("label", list(Label))
@pytest.mark.parametrize("clearance", list(Label))
def test_no_label_passes_a_lower_clearance(label: Label, clearance: Label) -> None:
    made = weighing(view(clearance=clearance), request(label=label), fitted=False)
    assert (WithinBoundary().check(made) is None) is (label <= clearance)


@pytest.mark.parametrize(
    ("health", "reason"),
    [
        (Health.UP, None),
        (Health.TRIAL, None),
        (Health.LOADING, Reason.LOADING),
        (Health.UNKNOWN, Reason.LOADING),
        (Health.OPEN, Reason.BREAKER_OPEN),
        (Health.RESTING, Reason.RESTING),
        (Health.DOWN, Reason.DOWN),
        (Health.DRAINING, Reason.DRAINING),
    ],
)
def test_states_of_health(health: Health, reason: Reason | None) -> None:
    assert Healthy().check(weighing(view(health=health))) is reason


@pytest.mark.parametrize("name", ["m", "vendor/m", "m:latest"])
def test_a_model_goes_by_any_of_its_names(name: str) -> None:
    seen = view(offers=(offer("m", served_as="vendor/m", aliases=("m:latest",)),))
    policy = plan(Route("m", name))
    made = Weighing(Ask(policy, request(), policy.routes["m"], NOW), seen, name, 0)
    assert ServesModel().check(made) is None
    assert made.offer.model == "m"


@pytest.mark.parametrize(
    ("rule", "seen", "reason", "limit", "needed"),
    [
        (WithinLimit(), view(slots=4, running=4, reserved=9), Reason.SLOTS_FULL, 4, 5),
        (WithinLimit(), view(slots=0), Reason.SLOTS_FULL, 0, 1),
        (WithinLimit(), view(slots=4, running=4, limited_by=LimitedBy.TPOT), Reason.TPOT_LIMIT, 4, 5),
        (WithinLimit(), view(slots=4, running=4, limited_by=LimitedBy.LEARNED), Reason.LEARNED_LIMIT, 4, 5),
        (
            WithinLimit(),
            view(slots=4, running=1, limited_by=LimitedBy.TPOT, health=Health.TRIAL),
            Reason.SLOTS_FULL,
            1,
            2,
        ),
        (KvHeadroom(), view(pool=10_000, running=1, reserved=9000), Reason.KV_FULL, 200, 1200),
        (KvHeadroom(), view(overcommitted=True, running=1), Reason.KV_FULL, 0, 1200),
        (OpenBacklog(), view(running=1, backlog=2.01), Reason.PREFILL_BACKLOG, 2.0, 2.01),
        (OpenBacklog(), view(running=1, backlog=2.01, queued_prefill=3.0), None, None, None),
    ],
)
def test_a_full_backend_says_how_full(
    rule: WithinLimit | KvHeadroom | OpenBacklog,
    seen: BackendView,
    reason: Reason | None,
    limit: float | None,
    needed: float | None,
) -> None:
    made = weighing(seen)
    assert rule.check(made) is reason
    assert (made.limit, made.needed) == (limit, needed)


def paced(tpot: float | None, *, arrival: float = NOW, **of: float | int) -> Weighing:
    """A prompt of a second (5000 tokens), on a backend whose steps take 20 ms."""
    policy = plan(Route("m", "m", tpot=tpot))
    made = Weighing(
        Ask(policy, replace(request(prompt=5000), arrival=arrival), policy.routes["m"], NOW),
        view(running=2, **of),
        "m",
        0,
    )
    assert ServesModel().check(made) is None
    assert FitsContext().check(made) is None
    made.fit()
    made.measure()
    return made


def test_prompts_take_no_more_of_the_time_than_keeps_the_pace() -> None:
    # Steps of 20 ms in 50 ms leave 60 % of 20 s.
    made = paced(0.05, decoding=2, prefill_pressure=11.5)
    assert KeepsPace().check(made) is Reason.DECODE_PACE
    assert (made.limit, made.needed) == (pytest.approx(12.0), pytest.approx(12.5, abs=0.01))
    assert KeepsPace().check(paced(0.05, decoding=2, prefill_pressure=10.9)) is None


@pytest.mark.parametrize(
    "made",
    [
        paced(None, decoding=2, prefill_pressure=19.0),
        paced(0.05, decoding=0, prefill_pressure=19.0),
        paced(0.05, decoding=2, prefill_pressure=19.0, arrival=NOW - 60.0),
    ],
    ids=["no goal", "nobody decodes", "aged"],
)
def test_whom_the_pace_does_not_hold_back(made: Weighing) -> None:
    assert KeepsPace().check(made) is None


def test_steps_that_are_too_long_by_themselves_leave_no_time_for_prompts() -> None:
    made = paced(0.01, decoding=2, prefill_pressure=0.0)
    assert KeepsPace().check(made) is Reason.DECODE_PACE
    assert made.limit == 0.0


def test_a_ceiling_counts_all_that_the_backend_holds() -> None:
    policy = plan(classes={"batch": ClassPolicy("batch", kv_ceiling=0.5)})
    seen = view(pool=10_000, running=1, reserved=3000, foreign=500)
    made = weighing(seen, request(klass="batch"), policy)
    assert ClassCeiling().check(made) is Reason.CLASS_CEILING
    assert (made.limit, made.needed) == (4600 - 500 - 3000, 1200)


def scarce(
    asked: Request, *, klass: ClassPolicy | None = None, others_free: bool = False, running: int = 3
) -> Weighing:
    """A long prompt's chances on a backend that has just got room, beside one that is full, or is not."""
    policy = plan(classes={"default": klass or ClassPolicy("default")})
    here = view("a", pool=100_000, running=running, reserved=50_000)
    other = view("b", pool=1_000_000, running=9, reserved=100_000 if others_free else 900_000)
    made = Weighing(Ask(policy, asked, policy.routes["m"], NOW, (here, other)), here, "m", 0)
    assert ServesModel().check(made) is None
    assert FitsContext().check(made) is None
    made.fit()
    return made


def test_while_kv_is_scarce_a_long_new_prompt_waits() -> None:
    made = scarce(request(prompt=30_000))
    assert ScarceKv().check(made) is Reason.KV_SCARCE
    assert (made.limit, made.needed) == (25_000, made.kv)
    assert made.kv > 30_000


def test_nobody_waits_for_kv_that_is_not_scarce_or_that_it_needs_little_of() -> None:
    assert ScarceKv().check(scarce(request(prompt=30_000), others_free=True)) is None
    assert ScarceKv().check(scarce(request(prompt=20_000))) is None
    assert ScarceKv().check(scarce(request(prompt=30_000), running=0)) is None


def test_a_backend_that_ran_out_of_memory_takes_no_long_new_prompt_however_much_others_have() -> None:
    def strained(asked: Request) -> Weighing:
        made = scarce(asked, others_free=True)
        made.view.strained = True
        return made

    assert ScarceKv().check(strained(request(prompt=30_000))) is Reason.KV_SCARCE
    assert ScarceKv().check(strained(request(prompt=20_000))) is None
    resident = request(prompt=30_000, hits={"a": hit(0.9)})
    assert ScarceKv().check(strained(resident)) is None


def test_scarce_kv_never_cuts_off_a_conversation_nor_holds_anybody_for_ever() -> None:
    resident = replace(request(prompt=30_000), hits={"b": hit(0.9)})
    assert ScarceKv().check(scarce(resident)) is None
    only_its_head = replace(request(prompt=30_000), hits={"b": hit(0.2)})
    assert ScarceKv().check(scarce(only_its_head)) is Reason.KV_SCARCE
    assert ScarceKv().check(scarce(request(prompt=30_000, waited=20.0))) is None
    assert ScarceKv().check(scarce(request(prompt=30_000), klass=ClassPolicy("default", spared=True))) is None

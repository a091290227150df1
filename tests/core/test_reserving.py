from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.backend import Offer
from gateway.core.boundary import Label
from gateway.core.bounds import Bound
from gateway.core.context_cap import narrowest, window_of
from gateway.core.decide import decide
from gateway.core.demand import FLOOR_OUTPUT, Demands
from gateway.core.footprint import Footprint
from gateway.core.kv.shape import round_up
from gateway.core.plan import ClassPolicy, Plan, Route
from gateway.core.request import Estimate, Hit, Request
from gateway.core.reserving import footprint_of, held_on
from gateway.core.snapshot import BackendView, Health
from tests.core.fleet import NOW, hit, offer, plan, request, snapshot, view

ROUTE = Route("m", "m")


def needed(asked: Request, seen: BackendView, served: Offer, policy: Plan, route: Route) -> Footprint:
    demand = Demands(policy, asked, route).on(seen, served)
    return footprint_of(seen, served, demand, held_on(seen, demand, asked.hits.get(seen.name)))


def test_a_footprint_counts_prompt_and_expected_output_in_whole_blocks() -> None:
    asked = request(prompt=1000, high=1100, output=150, output_high=300)
    footprint = needed(asked, view(block=528), offer(), plan(), ROUTE)
    assert (footprint.prompt, footprint.prompt_high, footprint.output, footprint.output_mean) == (1000, 1100, 300, 150)
    assert footprint.kv == 3 * 528
    assert footprint.kv_bytes == 3 * 528 * 1000
    assert footprint.max_tokens is None


def test_a_hit_counts_as_far_as_it_is_trusted_in_whole_blocks() -> None:
    asked = request(prompt=1000, hits={"a": hit(0.8, trust=0.5)})
    footprint = needed(asked, view("a", block=16), offer(), plan(), ROUTE)
    assert (footprint.cached, footprint.uncached) == (400, 600)
    assert needed(asked, view("b"), offer(), plan(), ROUTE).cached == 0


def test_the_last_token_is_always_computed() -> None:
    footprint = needed(request(prompt=64, hits={"a": hit(1.0)}), view("a", block=16), offer(), plan(), ROUTE)
    assert footprint.cached == 63


def test_a_pinned_prefix_is_not_charged_where_it_is_shared() -> None:
    asked = request(prompt=1600, output=160, hits={"a": hit(0.5, pinned=True)})
    assert needed(asked, view("a"), offer(), plan(), ROUTE).kv == 960
    assert needed(asked, view("a", shares_prefix=False), offer(), plan(), ROUTE).kv == 1760


def test_no_more_is_left_out_than_the_running_ones_reserved() -> None:
    asked = request(prompt=1600, output=160, hits={"a": Hit(0.5, 1.0, pinned=0.5, held=500)})
    footprint = needed(asked, view("a"), offer(), plan(), ROUTE)
    assert (footprint.shared, footprint.kv) == (496, 1264)
    nothing = request(prompt=1600, output=160, hits={"a": Hit(0.5, 1.0, pinned=0.5, held=0)})
    assert needed(nothing, view("a"), offer(), plan(), ROUTE).shared == 0


@given(
    prompt=st.integers(1, 40_000),
    share=st.floats(0.0, 1.0),
    trust=st.floats(0.0, 1.0),
    part=st.floats(0.0, 1.0),
    held=st.none() | st.integers(0, 50_000),
    block=st.sampled_from([1, 16, 528]),
)
def test_a_discount_never_exceeds_what_is_resident_and_reserved_by_others(
    prompt: int, share: float, trust: float, part: float, held: int | None, block: int
) -> None:
    pinned = share * part
    asked = request(prompt=prompt, output=10, hits={"a": Hit(share, trust, pinned, held)})
    footprint = needed(asked, view("a", block=block, pool=10**6), offer(window=10**6), plan(), ROUTE)
    assert 0 <= footprint.shared <= pinned * prompt
    assert footprint.shared <= footprint.cached
    assert footprint.shared % block == 0
    assert held is None or footprint.shared <= held
    assert footprint.kv >= block
    apart = needed(asked, view("a", block=block, shares_prefix=False), offer(), plan(), ROUTE)
    assert apart.shared == 0


def test_a_pool_that_holds_prompt_and_a_short_answer_is_used_to_its_end() -> None:
    asked = request(prompt=1000, output=100, output_high=5000)
    assert needed(asked, view(pool=1610, block=16), offer(), plan(), ROUTE).kv == 1600


@pytest.mark.parametrize(
    ("asked", "default", "ceiling", "sent", "reserved"),
    [
        (None, None, None, None, 800),
        (None, 512, None, 512, 512),
        (None, None, 600, 600, 600),
        (100, 512, None, None, 100),
        (9000, None, 4000, 4000, 800),
        (300, None, 4000, None, 300),
        (30_000, None, None, 22_468, 800),
    ],
)
def test_output_budgets(
    asked: int | None, default: int | None, ceiling: int | None, sent: int | None, reserved: int
) -> None:
    route = Route("m", "m", output_default=default, output_ceiling=ceiling)
    wanted = request(prompt=10_000, high=10_100, output=200, output_high=800, max_tokens=asked)
    footprint = needed(wanted, view(), offer(window=32_768), plan(), route)
    assert (footprint.max_tokens, footprint.output) == (sent, reserved)


def test_no_sequence_holds_more_than_the_window_of_its_engine_however_unsure_the_estimate() -> None:
    unsure = request(prompt=4000, high=8262, output=500, output_high=900)
    seen = view(pool=8192, slots=2, block=1, shares_prefix=False)
    footprint = needed(unsure, seen, offer(window=4096), plan(), ROUTE)
    assert (footprint.kv, footprint.ceiling) == (4096, 4096)
    twice = needed(request(prompt=4000, high=8262, n=2), seen, offer(window=4096), plan(), ROUTE)
    assert (twice.kv, twice.ceiling) == (8192, 8192)


def test_what_the_output_limit_rules_out_is_never_held() -> None:
    footprint = needed(request(prompt=1000, output=500, output_high=900, max_tokens=24), view(), offer(), plan(), ROUTE)
    assert footprint.kv == footprint.ceiling == 1024


def test_the_strict_policy_reserves_the_whole_budget_of_every_choice_and_stays_in_the_pool() -> None:
    strict = plan(reserve="worst_case")
    wanted = request(prompt=1000, output=50, max_tokens=2000, n=3)
    assert needed(wanted, view(), offer(), strict, ROUTE).output == 6000
    open_ended = needed(request(prompt=1000, output=50), view(pool=20_000), offer(), strict, ROUTE)
    assert (open_ended.output, open_ended.max_tokens, open_ended.kv) == (19_000, 19_000, 20_000)


def test_the_narrowest_window_holds_and_it_is_known_whose_it_is() -> None:
    wide, anything = offer(window=100_000), request()
    assert window_of(view(), wide, ROUTE, plan(), anything) == (100_000, Bound.ENGINE)
    assert window_of(view(context_cap=50_000), wide, ROUTE, plan(), anything) == (50_000, Bound.BACKEND)
    capped = Route("m", "m", context=20_000)
    assert window_of(view(context_cap=50_000), wide, capped, plan(), anything) == (20_000, Bound.MODEL)
    assert window_of(view(), wide, Route("m", "m", context="longest"), plan(), anything) == (100_000, Bound.ENGINE)
    small_key = request(context=10_000)
    assert window_of(view(context_cap=50_000), wide, capped, plan(), small_key) == (10_000, Bound.KEY)
    assert window_of(view(context_cap=5_000), wide, capped, plan(), small_key) == (5_000, Bound.BACKEND)
    strict = plan(reserve="worst_case")
    assert window_of(view(pool=4_000), wide, capped, strict, small_key) == (4_000, Bound.POOL)


def test_key_and_class_together_allow_what_the_narrower_of_them_does() -> None:
    assert narrowest(None, ClassPolicy("batch")) == (None, Bound.KEY)
    assert narrowest(9_000, ClassPolicy("batch")) == (9_000, Bound.KEY)
    assert narrowest(None, ClassPolicy("batch", context=8_000)) == (8_000, Bound.CLASS)
    assert narrowest(9_000, ClassPolicy("batch", context=8_000)) == (8_000, Bound.CLASS)
    assert narrowest(7_000, ClassPolicy("batch", context=8_000)) == (7_000, Bound.KEY)


def test_a_route_capped_at_the_shortest_window_is_held_to_that() -> None:
    fleet = snapshot(
        view("wide", offers=(offer(window=65_536),), context_cap=16_384),
        view("narrow", offers=(offer(window=8192),), clearance=Label.PUBLIC),
        view("other", offers=(offer("n", window=4096),)),
        view("leaving", offers=(offer(window=4096),), health=Health.DRAINING),
    )
    policy = plan(Route("m", "m", context="shortest"))
    resolved = policy.route("m", fleet)
    assert resolved is not None
    assert resolved.context == 8192
    assert decide(policy, request(prompt=9000), fleet, NOW, 0.0).limit == 8192
    secret = plan(Route("m", "m", context="shortest", label=Label.CONFIDENTIAL)).route("m", fleet)
    assert secret is not None
    assert secret.context == 16_384, "the narrow one may not see it"
    assert plan(Route("m", "m", context="shortest")).route("m", snapshot()) == Route("m", "m")


@given(
    prompt=st.integers(1, 40_000),
    spread=st.floats(1.0, 1.5),
    output=st.integers(0, 5000),
    asked=st.none() | st.integers(1, 100_000),
    n=st.integers(1, 4),
    window=st.sampled_from([4096, 32_768, 131_072]),
    engine=st.tuples(st.sampled_from([0, 8192, 100_000]), st.sampled_from([1, 16, 528]), st.booleans()),
    reserve=st.sampled_from(["expected", "worst_case"]),
)
def test_every_footprint_is_sane(
    prompt: int,
    spread: float,
    output: int,
    asked: int | None,
    n: int,
    window: int,
    engine: tuple[int, int, bool],
    reserve: str,
) -> None:
    pool, block, shares = engine
    wanted = request(
        prompt=prompt, high=int(prompt * spread), output=output, output_high=output * 2, max_tokens=asked, n=n
    )
    seen = view(pool=pool, block=block, shares_prefix=shares)
    footprint = needed(wanted, seen, offer(window=window), plan(reserve=reserve), ROUTE)
    assert footprint.kv % block == 0
    assert footprint.kv > 0
    assert not pool or footprint.kv <= pool
    assert footprint.kv <= n * round_up(window, block)
    assert footprint.kv <= footprint.ceiling or footprint.kv == pool - pool % block
    assert footprint.ceiling <= n * round_up(window, block)
    assert 0 <= footprint.output_mean <= (asked or output)
    if footprint.max_tokens is not None:
        assert footprint.max_tokens > 0
        assert asked is None or footprint.max_tokens < asked
        # Where a likely answer fits on the high side of the prompt, else from the best guess.
        nearer = window - footprint.prompt_high
        assert footprint.max_tokens <= max(nearer if nearer >= output else window - prompt, FLOOR_OUTPUT)


def test_embeddings_reserve_no_output_even_strictly() -> None:
    asked = request(prompt=1000, output=0)
    assert needed(asked, view(), offer(), plan(reserve="worst_case"), ROUTE).kv == 1008


def test_the_low_side_mirrors_the_high_one() -> None:
    assert Estimate(1000, 1100, 0, 0).prompt_low == 900
    assert Estimate(10, 100, 0, 0).prompt_low == 1
    assert Estimate(1000, 1100, 0, 0, prompt_floor=700).prompt_low == 700
    assert Estimate(1000, 1100, 0, 0, prompt_floor=950).prompt_low == 900
    assert Estimate(1000, 1100, 0, 0, prompt_floor=700).at_least(1500).prompt_low == 1500

"""A pool counted in tokens is charged what an engine's blocks hold: never less, and for hybrids exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config import catalog
from gateway.core.decide import decide
from gateway.core.decision import Verdict
from gateway.core.demand import Demands
from gateway.core.kv.charge import NO_CHARGE, Charge, pool_unit
from gateway.core.kv.deployment import Deployment
from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.pool_plan import PoolPlan, plan_pool
from gateway.core.kv.shape import round_up
from gateway.core.plan import Route
from gateway.core.reserving import footprint_of, held_on
from gateway.core.snapshot import Snapshot
from tests.core.fleet import NOW, hit, offer, plan, request, snapshot, view

MODELS = [name for name in catalog.model_ids() if (known := catalog.known_model(name)) and known.kv_known]
HYBRID = Charge(fixed=12_576, most=12_576)
"""Qwen3.6-35B-A3B in vLLM with fp8: three groups of states with two pages of 2096 tokens each."""


def planned(name: str, dtype: KvDtype = KvDtype.FP8, engine: str = "vllm") -> PoolPlan:
    model = catalog.known_model(name)
    assert model is not None
    return plan_pool(model, Deployment(engine=engine, kv_dtype=dtype, context=131_072))


@given(
    st.sampled_from(MODELS),
    st.integers(1, 300_000),
    st.sampled_from([KvDtype.F16, KvDtype.FP8]),
    st.sampled_from(["vllm", "sglang", "llama.cpp"]),
)
def test_no_sequence_is_charged_less_than_its_blocks(name: str, tokens: int, dtype: KvDtype, engine: str) -> None:
    pool = planned(name, dtype, engine)
    unit = pool_unit(pool)
    held = round_up(tokens, pool.block)
    charged = held + unit.charge.beside(held)
    assert charged >= int(pool.request_blocks(tokens) * unit.per_block)
    assert unit.charge.beside(held) <= unit.charge.beside(held + 1) <= unit.charge.most


def test_hybrids_are_charged_to_the_block() -> None:
    pool = planned("Qwen3.6-35B-A3B")
    unit = pool_unit(pool)
    assert (pool.block, unit.per_block, unit.charge) == (2096, 2096.0, HYBRID)
    # The engine's own line: 299 blocks, 69 of them for a request of full length.
    assert round_up(131_072, 2096) + HYBRID.beside(131_072) == 69 * 2096
    assert unit.tokens(299) // (2096 + HYBRID.beside(2096)) == 299 // 7


def test_windows_are_charged_up_to_the_window() -> None:
    unit = pool_unit(planned("gpt-oss-20b", KvDtype.F16))
    assert unit.charge.beside(16) == 32
    assert unit.charge.beside(100_000) == unit.charge.most == 9 * 16


@pytest.mark.parametrize("name", ["Qwen3-8B", "Llama-3.1-8B", "DeepSeek-V3"])
def test_models_whose_layers_all_grow_are_charged_their_length(name: str) -> None:
    assert pool_unit(planned(name)).charge == NO_CHARGE


def test_short_requests_fill_a_hybrid_as_the_engine_counts_them() -> None:
    pool = 299 * 2096
    now: Snapshot = snapshot(view(pool=pool, slots=256, block=2096, charge=HYBRID, queued_prefill=1e9))
    asked = request(prompt=400, output=100)
    seen = now.views[0]
    served = seen.offers[0]
    demand = Demands(plan(), asked, Route("m", "m")).on(seen, served)
    footprint = footprint_of(seen, served, demand, held_on(seen, demand, None))
    assert footprint.kv == 7 * 2096
    assert footprint.kv_bytes == served.kv.bytes(2096)
    full = view(pool=pool, slots=256, block=2096, charge=HYBRID, running=39, reserved=39 * 7 * 2096, backlog=0.0)
    assert decide(plan(), asked, snapshot(full), NOW, 0.5).verdict is Verdict.WAIT


def test_choices_hold_states_each_and_share_none() -> None:
    seen = view(pool=10**7, block=2096, charge=HYBRID)
    asked = request(prompt=6288, output=100, n=3, hits={"a": hit(1.0, pinned=True)})
    served = offer()
    demand = Demands(plan(), asked, Route("m", "m")).on(seen, served)
    assert demand.beside == 3 * 12_576
    assert demand.kv == 6288 + 3 * 2096 + demand.beside
    cached, shared, kv = held_on(seen, demand, asked.hits["a"])
    assert 0 < shared <= cached
    assert kv == demand.kv - shared >= demand.beside + 2096


def test_a_pool_smaller_than_state_and_prompt_is_said_to_be() -> None:
    small = view(pool=7 * 2096 - 1, block=2096, charge=HYBRID)
    decision = decide(plan(), request(prompt=2000, output=10), snapshot(small), NOW, 0.5)
    assert decision.verdict is Verdict.REJECT


def test_the_worst_case_of_a_hybrid_stays_inside_its_pool() -> None:
    strict = plan(reserve="worst_case")
    seen = view(pool=20 * 2096, block=2096, charge=HYBRID)
    demand = Demands(strict, request(prompt=1000), Route("m", "m")).on(seen, offer(window=131_072))
    assert demand.window == 14 * 2096
    assert demand.ceiling <= 20 * 2096

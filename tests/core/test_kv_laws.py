"""Laws that every plan keeps, for every model of the catalogue on every engine."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config import catalog
from gateway.core.kv.block_pool import BlockPool, block_pool
from gateway.core.kv.deployment import Deployment
from gateway.core.kv.dtype import KvDtype
from gateway.core.kv.layer_spec import Kind
from gateway.core.kv.model import ModelShape
from gateway.core.kv.pool_plan import PoolPlan, plan_pool

GIB = 1 << 30
ENGINES = ("vllm", "sglang", "llama.cpp", "ollama", "another")
MODELS = tuple(model for model in map(catalog.known_model, catalog.model_ids()) if model is not None and model.kv_known)
DTYPES = (KvDtype.F16, KvDtype.FP8, KvDtype.Q8_0)

TOKENS = st.integers(0, 300_000)
POOLS = st.integers(0, 600 * GIB)
DEPLOYMENTS = st.builds(
    Deployment,
    engine=st.sampled_from(ENGINES),
    kv_dtype=st.sampled_from(DTYPES),
    tensor_parallel=st.sampled_from((1, 2, 4, 8)),
    pipeline_parallel=st.sampled_from((1, 2, 3)),
    context=st.sampled_from((0, 1000, 65_536)),
    slots=st.integers(1, 8),
    unified=st.booleans(),
    batched_tokens=st.sampled_from((0, 512, 8192)),
    overlapping_batches=st.sampled_from((1, 2)),
    prefix_caching=st.booleans(),
    draft_tokens=st.sampled_from((0, 1, 5)),
    block=st.sampled_from((0, 32, 128)),
    value_dtype=st.sampled_from((None, KvDtype.Q4_0)),
)


@cache
def plan(model: ModelShape, deployment: Deployment) -> PoolPlan:
    return plan_pool(model, deployment)


PLANS = st.builds(plan, st.sampled_from(MODELS), DEPLOYMENTS)


def test_the_catalogue_is_there() -> None:
    assert len(MODELS) > 60


@given(PLANS, TOKENS, TOKENS)
def test_more_tokens_never_cost_less(pool: PoolPlan, one: int, other: int) -> None:
    short, long = sorted((one, other))
    assert pool.request_blocks(short) <= pool.request_blocks(long)
    assert pool.admission_blocks(short) <= pool.admission_blocks(long)
    assert pool.request_bytes(short) <= pool.request_bytes(long)
    assert pool.admission_bytes(short) <= pool.admission_bytes(long)
    assert pool.stored_bytes(short) <= pool.stored_bytes(long)
    assert pool.total_bytes(short) <= pool.total_bytes(long)


@given(PLANS, TOKENS)
def test_blocks_cover_tokens_where_a_cache_grows(pool: PoolPlan, tokens: int) -> None:
    grows = pool.request_blocks(10**7) > pool.request_blocks(10**6)
    if grows:
        assert pool.request_blocks(tokens) * pool.block >= tokens


@given(PLANS, TOKENS)
def test_what_is_stored_fits_in_what_is_taken_and_that_in_what_is_reserved(pool: PoolPlan, tokens: int) -> None:
    assert 0 <= pool.stored_bytes(tokens) <= pool.request_bytes(tokens) <= pool.admission_bytes(tokens)
    assert pool.request_bytes(tokens) <= pool.total_bytes(tokens)


@given(st.sampled_from(MODELS), DEPLOYMENTS, TOKENS)
def test_all_ranks_together_hold_at_least_the_model(model: ModelShape, deployment: Deployment, tokens: int) -> None:
    settled = replace(deployment, draft_tokens=0, value_dtype=None)
    alone = replace(settled, tensor_parallel=1, pipeline_parallel=1)
    # A smaller state on a rank may make smaller blocks, so that less is padded: up to a block of each group.
    padding = 1 if settled.engine in {"sglang", "llama.cpp", "ollama"} else 2
    rounding = padding * plan(model, alone).total_bytes(1)
    assert plan(model, settled).total_bytes(tokens) + rounding >= plan(model, alone).total_bytes(tokens)


@given(st.sampled_from(MODELS), DEPLOYMENTS, st.integers(256, 300_000))
def test_nothing_that_a_layer_stores_is_forgotten(model: ModelShape, deployment: Deployment, tokens: int) -> None:
    settled = replace(deployment, draft_tokens=0, value_dtype=None)
    tp = 1 if settled.engine in {"llama.cpp", "ollama"} else settled.tensor_parallel
    # The mean of several windows is a bound from above, and compressors hold a part of theirs.
    if len({layers.window for layers in model.layers if hasattr(layers, "window")}) <= 1:
        assert plan(model, settled).total_bytes(tokens) >= model.kv(settled.kv_dtype, tp).bytes(tokens) - 1


@given(PLANS, POOLS, st.integers(1, 300_000))
def test_sequences_fit_in_their_pool(pool: PoolPlan, pool_bytes: int, tokens: int) -> None:
    fitting = pool.sequences(pool_bytes, tokens)
    assert fitting >= 0
    assert fitting * pool.request_bytes(tokens) <= pool_bytes + fitting


@given(PLANS, POOLS, POOLS, st.integers(1, 300_000))
def test_a_larger_pool_never_holds_less(pool: PoolPlan, one: int, other: int, tokens: int) -> None:
    small, large = sorted((one, other))
    assert pool.blocks_in(small) <= pool.blocks_in(large)
    assert pool.sequences(small, tokens) <= pool.sequences(large, tokens)
    assert pool.capacity_tokens(small) <= pool.capacity_tokens(large)
    assert pool.concurrency(small) <= pool.concurrency(large)


@given(PLANS, POOLS, TOKENS, TOKENS)
def test_longer_requests_never_fit_more_often(pool: PoolPlan, pool_bytes: int, one: int, other: int) -> None:
    short, long = sorted((one, other))
    if short:
        assert pool.sequences(pool_bytes, long) <= pool.sequences(pool_bytes, short)


@given(PLANS, POOLS)
def test_blocks_fit_in_their_pool(pool: PoolPlan, pool_bytes: int) -> None:
    assert pool.blocks_in(pool_bytes) * (pool.block_bytes - 1) <= pool_bytes


@given(st.sampled_from(MODELS), DEPLOYMENTS, TOKENS)
def test_more_in_flight_never_reserves_less(model: ModelShape, deployment: Deployment, tokens: int) -> None:
    more = replace(deployment, batched_tokens=deployment.batched_tokens + 4096)
    assert plan(model, deployment).admission_bytes(tokens) <= plan(model, more).admission_bytes(tokens)


@given(st.sampled_from(MODELS), DEPLOYMENTS, st.sampled_from((2, 3, 5)))
def test_pipeline_stages_share_a_block(model: ModelShape, deployment: Deployment, stages: int) -> None:
    whole = block_pool(model, replace(deployment, pipeline_parallel=1))
    staged = block_pool(model, replace(deployment, pipeline_parallel=stages))
    assert staged.block_bytes <= whole.block_bytes <= staged.block_bytes * stages
    assert staged.total_block_bytes == whole.total_block_bytes


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model.id))
def test_every_model_on_every_engine(model: ModelShape, engine: str) -> None:
    pool = plan_pool(model, Deployment(engine=engine, slots=2, unified=True, kv_dtype=KvDtype.F16))
    assert pool.steps
    assert all(step.label and step.formula and step.unit and step.value >= 0 for step in pool.steps)
    assert (pool.block_bytes > 0) == model.keeps_kv
    if model.keeps_kv:
        assert pool.sequences(600 * GIB, 1000) >= 1
        assert all(step.value > 0 for step in pool.steps_in(600 * GIB))
    else:
        assert pool.request_bytes(1000) == pool.capacity_tokens(600 * GIB) == 0
        assert pool.steps_in(600 * GIB) == ()


@given(st.sampled_from(MODELS), DEPLOYMENTS)
def test_groups_hold_every_layer_once(model: ModelShape, deployment: Deployment) -> None:
    pool = block_pool(model, replace(deployment, pipeline_parallel=1, draft_tokens=0))
    for kind, counted in _layers_of(model).items():
        held = sum(group.count * group.layers - group.padding for group in pool.groups if group.kind is kind)
        assert held >= counted


def _layers_of(model: ModelShape) -> dict[Kind, int]:
    names = {"FullGqa": Kind.GROWING, "Mla": Kind.GROWING, "SlidingGqa": Kind.SLIDING, "ChunkedLocalGqa": Kind.CHUNKED}
    names |= dict.fromkeys(("GatedDeltaNet", "Mamba2", "Kda"), Kind.STATE)
    return {names[type(each).__name__]: each.layers for each in model.layers if type(each).__name__ in names}


def test_a_model_of_unknown_layout_is_not_planned() -> None:
    for engine in ENGINES:
        with pytest.raises(ValueError, match="not known"):
            plan_pool(ModelShape("m", (), kv_known=False), Deployment(engine=engine))


@pytest.mark.parametrize("wrong", [{"tensor_parallel": 0}, {"slots": 0}, {"context": -1}, {"overlapping_batches": 0}])
def test_impossible_deployments_are_refused(wrong: dict[str, int]) -> None:
    name = next(iter(wrong))
    with pytest.raises(ValueError, match=name):
        Deployment(**wrong)  # type: ignore[arg-type]


def test_a_block_pool_is_what_the_default_engine_gets() -> None:
    assert isinstance(plan_pool(MODELS[0], Deployment()), BlockPool)

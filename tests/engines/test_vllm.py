from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.core.kv.engine_pool import EnginePool
from gateway.engines.adapter import Answer, FailureKind, Load
from gateway.engines.registry import engine
from gateway.engines.vllm import Vllm
from gateway.wire.splice import splice
from tests.engines.probed import answers, body, chat, page
from tests.recordings import recording

VLLM = Vllm()


def metrics(text: str) -> dict[str, Answer]:
    return {"/metrics": page(text)}


def test_facts_of_a_real_server() -> None:
    facts = VLLM.facts(answers("vllm", v1_models="get_models", metrics="get_metrics", version="get_version"))
    (model,) = facts.models
    assert (model.id, model.window) == ("tiny", 2048)
    assert (facts.slots, facts.pool_tokens, facts.block) == (None, 2097152, 128)
    assert facts.version == "0.32.0"
    assert facts.unified is None
    assert facts.notes


@pytest.mark.parametrize(
    ("labels", "pool", "block"),
    [
        ('block_size="16",num_gpu_blocks="100",kv_cache_size_tokens="1500"', 1500, 16),
        ('block_size="16",num_gpu_blocks="100",kv_cache_size_tokens="0"', 1600, 16),
        ('block_size="16",num_gpu_blocks="100",kv_cache_size_tokens="None"', 1600, 16),
        ('block_size="16",num_gpu_blocks="100"', 1600, 16),
        ('block_size="16",num_gpu_blocks="None"', None, 16),
        ('num_gpu_blocks="100"', None, None),
    ],
)
def test_the_pool_by_any_of_its_names(labels: str, pool: int | None, block: int | None) -> None:
    facts = VLLM.facts(metrics(f"vllm:cache_config_info{{{labels}}} 1.0\n"))
    assert (facts.pool_tokens, facts.block) == (pool, block)


def test_data_parallel_engines_are_added_up() -> None:
    text = "".join(
        f'vllm:cache_config_info{{engine="{i}",block_size="16",num_gpu_blocks="100"}} 1.0\n'
        f'vllm:num_requests_running{{engine="{i}",model_name="m"}} {i + 1}.0\n'
        f'vllm:kv_cache_usage_perc{{engine="{i}",model_name="m"}} 0.{i + 2}\n'
        for i in range(2)
    )
    load = VLLM.load(metrics(text))
    assert (load.running, load.kv_tokens) == (3, 800)
    assert load.kv_usage == pytest.approx(0.25)


def test_load_of_a_real_server() -> None:
    load = VLLM.load(answers("vllm", metrics="get_metrics"))
    assert load == Load(
        running=0,
        waiting=0,
        kv_usage=0.0,
        kv_tokens=0,
        preemptions=0.0,
        tokens_generated=257.0,
        restarted_at=1.79606907093e9,
    )


@pytest.mark.parametrize("name", ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"])
def test_the_kv_usage_by_its_old_and_new_name(name: str) -> None:
    assert VLLM.load(metrics(f'{name}{{model_name="m"}} 0.5\n')).kv_usage == 0.5


def test_absent_numbers_are_none() -> None:
    assert VLLM.load({}) == Load()
    assert VLLM.load({"/metrics": page("", 404)}) == Load()
    assert VLLM.load(metrics("vllm:num_requests_running NaN\n")) == Load()
    assert VLLM.load(metrics("not a page")) == Load()
    facts = VLLM.facts({"/v1/models": page("oops"), "/metrics": page("", 500)})
    assert (facts.models, facts.pool_tokens, facts.block, facts.version) == ((), None, None, None)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("err_prompt_too_long", FailureKind.CONTEXT),
        ("err_max_tokens_too_big", FailureKind.CONTEXT),
        ("err_max_tokens_zero", FailureKind.CLIENT),
        ("err_wrong_type", FailureKind.CLIENT),
        ("err_bad_json", FailureKind.CLIENT),
        ("err_image_unsupported", FailureKind.CLIENT),
        ("err_unknown_model", FailureKind.NOT_FOUND),
        ("get_404", FailureKind.NOT_OFFERED),
        ("post_models_405", FailureKind.NOT_OFFERED),
        ("overload_max_num_queued_reqs_503", FailureKind.BUSY),
    ],
)
def test_recorded_failures(name: str, kind: FailureKind) -> None:
    answer = recording("vllm", name)
    failure = VLLM.failure(answer.status, answer.body)
    assert failure.kind is kind
    assert not failure.blame
    assert failure.retryable == (kind in (FailureKind.BUSY, FailureKind.NOT_FOUND, FailureKind.NOT_OFFERED))


def test_an_overflow_tells_both_numbers() -> None:
    failure = VLLM.failure(400, recording("vllm", "err_prompt_too_long").body)
    assert (failure.limit, failure.requested) == (2048, 2049)


def test_an_error_inside_a_stream_tells_its_own_status() -> None:
    failure = VLLM.failure(200, b'{"error":{"message":"m","type":"BadRequestError","code":400}}')
    assert (failure.kind, failure.message) == (FailureKind.CLIENT, "m")
    assert VLLM.failure(200, b'{"error":{"message":"m","code":500}}').kind is FailureKind.SERVER


def edited(**more: Any) -> dict[str, Any]:
    req = chat(**more)
    edits = VLLM.edits(req, served_as="served", stream=VLLM.streams_upstream(req), max_tokens=None)
    result: dict[str, Any] = json.loads(splice(body(**more), edits))
    result.pop("messages")
    return result


def test_a_stream_is_asked_for_its_usage_but_no_is_no() -> None:
    assert edited() == {"model": "served"}
    assert edited(stream=True)["stream_options"] == {"include_usage": True}
    assert edited(stream=True, stream_options={"continuous_usage_stats": True})["stream_options"] == {
        "continuous_usage_stats": True,
        "include_usage": True,
    }
    assert edited(stream=True, stream_options=None)["stream_options"] == {"include_usage": True}
    assert edited(stream=True, stream_options={"include_usage": False})["stream_options"] == {"include_usage": False}


def test_what_steers_the_scheduler_is_dropped_and_the_rest_is_not() -> None:
    steering = {"request_id": "same", "priority": -100, "cache_salt": "s"}
    passing = {"min_p": 0.1, "chat_template_kwargs": {"enable_thinking": False}, "x_unknown": [1]}
    assert edited(**steering, **passing) == {"model": "served", **passing}


def test_a_fresh_request_id_is_sent() -> None:
    assert engine("vllm").headers("attempt-7")["x-request-id"] == "attempt-7"


def test_the_load_report_in_a_whole_answer() -> None:
    assert VLLM.reply_load(recording("vllm", "orca_json").headers) == Load(waiting=0, kv_usage=0.0)
    assert VLLM.reply_load({}) is None
    assert VLLM.reply_load({"endpoint-load-metrics": "TEXT a=1"}) is None
    assert VLLM.reply_load({"endpoint-load-metrics": "JSON [1]"}) is None


def test_the_pool_beyond_its_tokens() -> None:
    labels = (
        'block_size="16",effective_attention_block_size="2096",num_gpu_blocks="299",kv_cache_max_concurrency="4.3333",'
        'cache_dtype="fp8",gpu_memory_utilization="0.92",enable_prefix_caching="False",kv_cache_memory_bytes="None"'
    )
    facts = VLLM.facts(metrics(f"vllm:cache_config_info{{{labels}}} 1.0\nprocess_start_time_seconds 5.0\n"))
    assert (facts.block, facts.pool_tokens, facts.started_at) == (2096, 299 * 2096, 5.0)
    assert facts.pool == EnginePool(
        blocks=299, concurrency=4.3333, dtype="fp8", memory_share=0.92, prefix_caching=False, groups=1
    )
    assert facts.pool.full_request_blocks == 69
    real = VLLM.facts(answers("vllm", metrics="get_metrics")).pool
    assert (real.blocks, real.concurrency, real.bytes) == (16_384, 1024.0, 1 << 30)
    assert (real.dtype, real.memory_share, real.prefix_caching) == (None, 0.92, True)
    assert real.full_request_blocks == 2048 // 128


def test_engines_of_which_one_is_silent_tell_no_blocks() -> None:
    text = (
        'vllm:cache_config_info{engine="0",block_size="16",num_gpu_blocks="100",kv_cache_max_concurrency="2.5"} 1.0\n'
        'vllm:cache_config_info{engine="1",block_size="16",num_gpu_blocks="None",kv_cache_size_tokens="1600"} 1.0\n'
    )
    pool = VLLM.facts(metrics(text)).pool
    assert (pool.blocks, pool.concurrency, pool.groups) == (None, None, 2)
    for odd in ("", "nan", "-1", "0", "word"):
        told = VLLM.facts(metrics(f'vllm:cache_config_info{{kv_cache_max_concurrency="{odd}"}} 1.0\n')).pool
        assert (told.concurrency, told.full_request_blocks) == (None, None)

"""An engine that comes back with other sizes is used with those: nothing that was read before is kept."""

from __future__ import annotations

import json
from typing import Any

from gateway.core.snapshot import BackendView, Health
from tests.recordings import recording
from tests.shell.engine_double import EngineDouble, llama_cpp, page, says, vllm, vllm_metrics
from tests.shell.fixtures import Start
from tests.shell.running import Running

OPENAPI = {"paths": {"/v1/chat/completions": {}}}


def seen(gateway: Running, name: str = "b1") -> BackendView:
    view = gateway.app.dispatcher.leases.snapshot().view(name)
    assert view is not None
    return view


def resized(engine: EngineDouble, fresh: EngineDouble) -> None:
    """The engine answers probes like another one from here on."""
    engine.pages = fresh.pages


async def test_another_context_is_noticed_between_two_samples_and_decided_with(start: Start) -> None:
    engine = llama_cpp(says("ok"), slots=2, window=4096)
    gateway = await start({"b1": engine})
    text = "word " * 2000
    assert (await gateway.chat(text, model="smollm2", max_tokens=16)).status == 200
    resized(engine, llama_cpp(slots=4, window=512))
    await gateway.until(lambda: seen(gateway).pool == 4 * 512)
    assert (seen(gateway).slots, seen(gateway).offers[0].window) == (4, 512)
    refused = await gateway.chat(text, model="smollm2", max_tokens=16)
    assert refused.status == 400
    assert refused.json["error"]["code"] == "context_length_exceeded"
    assert len(engine.asked) == 1
    assert any("was started anew" in line.get("message", "") for line in await gateway.log_lines())
    resized(engine, llama_cpp(slots=1, window=8192))
    await gateway.until(lambda: seen(gateway).pool == 8192)
    assert (await gateway.chat(text, model="smollm2", max_tokens=16)).status == 200


async def test_a_later_start_with_another_pool_is_a_restart(start: Start) -> None:
    engine = vllm(says("ok"), pool=64_000)
    gateway = await start({"b1": engine})
    assert seen(gateway).pool == 64_000

    def later(text: str) -> str:
        return text.replace("process_start_time_seconds 1.79606907093e+09", "process_start_time_seconds 1.7970e+09")

    engine.pages = {**engine.pages, "/metrics": vllm_metrics(pool=32_000, edit=later)}
    await gateway.until(lambda: seen(gateway).pool == 32_000)
    await gateway.up("b1")
    assert (await gateway.chat("hi")).status == 200


async def test_what_is_asked_once_a_start_is_asked_again_after_it(start: Start) -> None:
    def pages(start_time: float, pool: int) -> dict[str, Any]:
        info = {"max_total_num_tokens": pool, "max_running_requests": 8, "page_size": 1, "enable_metrics": True}
        listed = {"object": "list", "data": [{"id": "tiny", "max_model_len": 2048}]}
        metrics = f"process_start_time_seconds {start_time}\nsglang:num_running_reqs 0.0\n"
        return {
            "/v1/models": page(listed),
            "/server_info": page(info),
            "/model_info": page({"is_generation": True}),
            "/openapi.json": page(OPENAPI),
            "/metrics": page(metrics.encode(), kind="text/plain"),
        }

    engine = EngineDouble("sglang", pages(1e9, 50_000), says("ok"))
    gateway = await start({"b1": engine}, rest="health: {probe: 500ms}")
    assert seen(gateway).pool == 50_000
    await gateway.until(lambda: engine.probed.count("/metrics") > 1)
    assert engine.probed.count("/server_info") == 1
    engine.pages = pages(1e9 + 60, 20_000)
    await gateway.until(lambda: seen(gateway).pool == 20_000)
    assert engine.probed.count("/server_info") == 2
    await gateway.up("b1")


async def test_an_engine_that_was_gone_is_read_anew(start: Start) -> None:
    engine = llama_cpp(says("ok"), slots=2, window=4096)
    gateway = await start({"b1": engine})
    loading = {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}
    was = engine.pages
    engine.pages = {path: page(loading, 503) for path in was}
    await gateway.until(lambda: gateway.health("b1") is Health.LOADING)
    engine.pages = llama_cpp(slots=3, window=1024).pages
    await gateway.up("b1")
    assert (seen(gateway).slots, seen(gateway).pool) == (3, 3072)


async def test_a_pool_that_memory_does_not_explain_is_shown(start: Start) -> None:
    listed = json.loads(recording("vllm", "get_models").body)
    listed["data"][0] |= {"id": "Qwen3-8B", "root": "Qwen3-8B", "max_model_len": 32_768}
    engine = vllm(says("ok"), pool=64_000, window=32_768)
    engine.pages = {**engine.pages, "/v1/models": page(listed)}
    gateway = await start({"b1": engine})
    (row,) = (await gateway.admin("/admin/backends"))["backends"]
    (pool,) = [one for one in row["mismatches"] if (one["fact"], one["unit"]) == ("KV pool", "tokens")]
    assert (pool["engine"], pool["by"]) == (64_000, "arithmetic")
    assert pool["ratio"] < -0.5
    ratio = await gateway.value('kvgate_capacity_mismatch_ratio{backend="b1"}')
    assert abs(ratio) >= abs(pool["ratio"]) - 1e-3
    said = [
        line for line in await gateway.log_lines() if "KV pool: 64,000 tokens by the engine" in line.get("message", "")
    ]
    assert len(said) == 1

"""What a gateway makes of what engines tell of their load: preemptions, others' traffic, load reports, silence."""

from __future__ import annotations

import json
import re
from typing import Any

from gateway import clock
from tests.http.test_context import prose
from tests.relay.fake_engine import Request, Script, Wire, json_answer
from tests.shell.engine_double import page, says, vllm, vllm_metrics
from tests.shell.fixtures import Start

QUICK = "health: {probe: 500ms}"


def preempting(count: int, usage: float = 0.9) -> Script:
    """The metrics page of an engine that has preempted so often since its start."""

    def edit(text: str) -> str:
        return re.sub(r"^(vllm:num_preemptions_total{.*}) .*$", rf"\g<1> {count}.0", text, flags=re.MULTILINE)

    return vllm_metrics(pool=50_000, running=1, usage=usage, edit=edit)


def whole(load: dict[str, float]) -> Script:
    """An answer in one piece whose head tells the engine's load as vLLM does when it is asked to."""

    async def script(request: Request, wire: Wire) -> None:
        choice = {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 20, "completion_tokens": 1, "total_tokens": 21}
        answer: dict[str, Any] = {"id": "c", "object": "chat.completion", "created": 1, "model": "tiny", "usage": usage}
        asked = dict(request.headers).get("endpoint-load-metrics-format")
        told = [("endpoint-load-metrics", f"JSON {json.dumps({'named_metrics': load})}")] if asked == "JSON" else []
        await json_answer({**answer, "choices": [choice]}, headers=told)(request, wire)

    return script


async def test_preemptions_make_room_until_there_are_none(start: Start) -> None:
    engine = vllm(says("a"), window=65_536, pool=50_000)
    engine.pages["/metrics"] = preempting(3)
    gateway = await start({"b1": engine}, rest=QUICK)
    observer = gateway.app.roster["b1"].observer
    await gateway.until(lambda: observer.load is not None)
    assert await gateway.value('kvgate_kv_headroom_ratio{backend="b1"}') == 0.92
    engine.pages["/metrics"] = preempting(5)
    await gateway.until(lambda: observer.preemptions > 0)
    assert abs(await gateway.value('kvgate_kv_headroom_ratio{backend="b1"}') - 0.874) < 1e-9
    assert await gateway.value('kvgate_engine_preemptions_total{backend="b1"}') == 2
    engine.pages["/metrics"] = preempting(9)
    await gateway.until(lambda: observer.preemptions == 6)
    assert abs(observer.headroom.share - 0.874) < 1e-9, "the first cut has ten seconds to show"
    (row,) = [row for row in await rows(gateway) if row["name"] == "b1"]
    assert (row["kv_headroom"], row["preemptions"]) == (0.874, 6)


async def test_an_engine_that_ran_out_of_memory_is_filled_less(start: Start) -> None:
    out_of_memory = json_answer({"error": {"message": "CUDA out of memory. Tried to allocate 2.00 GiB"}}, 500)
    engine = vllm(out_of_memory, says("a"), window=65_536, pool=50_000)
    gateway = await start({"b1": engine})
    await gateway.chat()
    assert gateway.app.roster["b1"].observer.headroom.share == 0.92 * 0.95


async def test_others_that_fill_an_engine_and_queue_in_it_are_seen(start: Start) -> None:
    engine = vllm(says("a"), window=65_536, pool=50_000)
    gateway = await start({"b1": engine}, rest=f"{QUICK}\nqueue: {{wait: 400ms}}")

    def waiting(text: str) -> str:
        return re.sub(r"^(vllm:num_requests_waiting{.*}) .*$", r"\g<1> 4.0", text, flags=re.MULTILINE)

    engine.pages["/metrics"] = vllm_metrics(pool=50_000, running=3, usage=0.95, edit=waiting)
    await gateway.until(lambda: gateway.app.roster["b1"].foreign_tokens > 30_000, 6)
    assert await gateway.value('kvgate_kv_foreign_tokens{backend="b1"}') > 30_000
    assert await gateway.value('kvgate_engine_foreign_waiting{backend="b1"}') == 4
    (row,) = [row for row in await rows(gateway) if row["name"] == "b1"]
    assert (row["foreign_running"], row["foreign_waiting"]) == (3, 4)
    reply = await gateway.chat(prose(20_000) * 2, max_tokens=10)
    assert reply.status == 429
    assert engine.asked == []


async def test_ours_in_an_engine_are_nobody_elses(start: Start) -> None:
    """It answers whole, so until its end nothing is known of what it holds for us but the most that it may."""
    engine = vllm(says(*["a"] * 4, gap=0.5, prompt=10_000), window=65_536, pool=50_000)
    gateway = await start({"b1": engine}, rest=QUICK)
    held = await gateway.begin_chat(prose(10_000), max_tokens=100)
    await engine.asked_for(1)
    engine.pages["/metrics"] = vllm_metrics(pool=50_000, running=1, usage=0.16)
    probed = len(engine.probed)
    await engine.until(lambda: len(engine.probed) >= probed + 3)
    assert gateway.app.roster["b1"].foreign_tokens == 0
    engine.pages["/metrics"] = vllm_metrics(pool=50_000)
    assert (await held.reply()).status == 200


async def test_a_load_report_in_an_answer_is_a_sample_between_two_probes(start: Start) -> None:
    engine = vllm(whole({"kv_cache_usage_perc": 0.8, "num_requests_waiting": 3.0}), window=65_536, pool=50_000)
    gateway = await start({"b1": engine}, rest="health: {probe: 60s}")
    replies = [await gateway.chat(f"number {n}") for n in range(12)]
    assert {reply.status for reply in replies} == {200}
    assert dict(engine.asked[0].headers)["endpoint-load-metrics-format"] == "JSON"
    assert not any("endpoint-load-metrics" in reply.headers for reply in replies), "it is the engine's word to us"
    foreign = await gateway.value('kvgate_kv_foreign_tokens{backend="b1"}')
    assert 30_000 < foreign <= 40_000
    assert await gateway.value('kvgate_backend_load_known{backend="b1"}') == 0, "nobody has told how many run there"


async def test_metrics_that_went_stale_count_for_less_and_less(start: Start) -> None:
    engine = vllm(says("fine"), window=65_536, pool=50_000)
    engine.pages["/metrics"] = vllm_metrics(pool=50_000, running=3, usage=0.95)
    gateway = await start({"b1": engine}, rest=QUICK)
    await gateway.until(lambda: gateway.app.roster["b1"].foreign_tokens > 30_000, 6)
    engine.pages["/metrics"] = page({"detail": "Not Found"}, 404)
    probed = len(engine.probed)
    await engine.until(lambda: len(engine.probed) >= probed + 2)
    assert await gateway.value('kvgate_backend_load_known{backend="b1"}') == 0
    member, now = gateway.app.roster["b1"], clock.monotonic()
    there = member.observer.foreign_tokens(now)
    assert 0 < member.observer.foreign_tokens(now + 130.0) < there / 2
    assert member.observer.foreign_tokens(now + 3600.0) < 1
    assert (await gateway.chat()).status == 200, "a small one fits all the same"


async def rows(gateway: Any) -> list[dict[str, Any]]:
    document = await gateway.admin("/admin/backends")
    return document["backends"] if isinstance(document, dict) else document

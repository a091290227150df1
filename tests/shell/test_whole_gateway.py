from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import blockbuster
import pytest

from gateway.core.snapshot import Health
from tests.shell.engine_double import llama_cpp, openai_compatible, says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import events, text_of


@pytest.mark.parametrize("make", [llama_cpp, vllm, openai_compatible])
async def test_a_stream_goes_from_any_engine_to_a_client(start: Start, make: type) -> None:
    engine = make(says("Hel", "lo", prompt=7), model="m")
    gateway = await start({"b1": engine})
    reply = await gateway.chat(model="m", stream=True)
    assert reply.status == 200
    assert reply.complete
    assert text_of(reply.body) == "Hello"
    assert events(reply.body)[-1] == "[DONE]"
    assert reply.headers["x-kvgate-backend"] == "b1"
    await gateway.idle()
    assert await gateway.value('kvgate_requests_total{backend="b1",model="m",outcome="completed"}') == 1


@pytest.mark.parametrize("make", [llama_cpp, vllm, openai_compatible])
async def test_a_whole_answer_goes_from_any_engine_to_a_client(start: Start, make: type) -> None:
    engine = make(says("Hel", "lo", prompt=7), model="m")
    gateway = await start({"b1": engine})
    reply = await gateway.chat(model="m")
    assert reply.status == 200
    assert reply.json["choices"][0]["message"]["content"] == "Hello"
    assert reply.json["usage"]["prompt_tokens"] == 7
    await gateway.idle()
    assert await gateway.value('kvgate_tokens_total{backend="b1",kind="prompt",model="m"}') == 7


async def test_a_text_completion_is_served_too(start: Start) -> None:
    gateway = await start({"b1": vllm(says("a", "b"))})
    reply = await gateway.ask({"model": "tiny", "prompt": "x", "stream": True}, "/v1/completions")
    assert text_of(reply.body) == "ab"


async def test_models_windows_slots_and_pool_are_read_from_the_engines(start: Start) -> None:
    gateway = await start({"rig": llama_cpp(slots=3, window=1000), "big": vllm(window=5000, pool=64_000, block=32)})
    rows = {row["name"]: row for row in (await gateway.admin("/admin/backends"))["backends"]}
    assert rows["rig"]["slots"] == 3
    assert rows["rig"]["kv_pool_tokens"] == 3000
    assert rows["rig"]["models"][0]["window"] == 1000
    assert rows["big"]["kv_pool_tokens"] == 64_000
    assert rows["big"]["kv_block_tokens"] == 32
    assert [entry["id"] for entry in (await gateway.get("/v1/models")).json["data"]] == ["smollm2", "tiny"]


async def test_twenty_requests_at_once_over_two_engines_are_all_answered(start: Start) -> None:
    engines = {"b1": llama_cpp(says("x", gap=0.001), slots=2), "b2": llama_cpp(says("x", gap=0.001), slots=2)}
    gateway = await start(engines)
    replies = await asyncio.gather(*(gateway.chat(f"{n}", model="smollm2", stream=n % 2 == 0) for n in range(20)))
    assert [reply.status for reply in replies] == [200] * 20
    assert engines["b1"].most_busy <= 2
    assert engines["b2"].most_busy <= 2


async def test_the_journal_file_gets_a_line_a_request_without_its_text(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "decisions.jsonl"
    gateway = await start({"b1": vllm(says("x"))}, rest=f"telemetry: {{journal: {{path: {file}}}}}")
    for _ in range(3):
        assert (await gateway.chat("a private word")).status == 200
    await gateway.idle()
    await asyncio.to_thread(gateway.app.journal.flush)
    lines = (await asyncio.to_thread(file.read_text)).splitlines()
    assert len(lines) == 3
    assert all(json.loads(line) for line in lines)
    assert "private" not in "".join(lines)


async def test_a_blocking_call_on_the_loop_is_noticed(start: Start) -> None:
    """The other tests would not prove anything if this went unseen."""
    gateway = await start({"b1": vllm()})

    def blocks() -> bool:
        time.sleep(0.001)
        return True

    # A function of the gateway's own that blocks: only frames of the package are looked at.
    code = compile("def ready():\n    return blocks()\n", gateway.app.ready.__func__.__code__.co_filename, "exec")
    names = {"blocks": blocks}
    exec(code, names)
    with pytest.raises(blockbuster.BlockingError):
        names["ready"]()
    assert gateway.health("b1") is Health.UP


async def test_llama_cpp_is_told_which_slot_to_use_unless_the_file_says_otherwise(start: Start) -> None:
    body = {"model": "tiny", "id_slot": 7, "messages": [{"role": "user", "content": "hi"}]}
    engine = llama_cpp(says("Hel", "lo", prompt=7), model="tiny", slots=3)
    gateway = await start({"b1": engine})
    assert (await gateway.ask(body)).status == 200
    assert engine.body()["id_slot"] == 0
    other = llama_cpp(says("Hel", "lo", prompt=7), model="tiny", slots=3)
    gateway = await start({"b1": other}, b1={"slots": "{choose: false}"})
    assert (await gateway.ask(body)).status == 200
    assert "id_slot" not in other.body()

"""What a running gateway records is decided again as it was, over failures and a reload, and holds no text."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gateway.replay.reading import Recorded, files_of, looks
from gateway.replay.report import replay
from tests.relay.fake_engine import raw
from tests.shell.engine_double import says, vllm
from tests.shell.fixtures import Start


async def test_a_running_gateway_records_what_can_be_decided_again(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "recording.jsonl"
    engines = {"b1": vllm(says("one")), "b2": vllm(raw(then="reset"))}
    gateway = await start(engines, rest=f"telemetry: {{recording: {{path: {file}}}}}")
    body = {"model": "tiny", "prompt_cache_key": "SECRET-SESSION", "reasoning_effort": "SECRET EFFORT"}
    for number in range(6):
        reply = await gateway.ask(body | {"messages": [{"role": "user", "content": f"SECRET-WORD {number}"}]})
        assert reply.status == 200
    before = gateway.file.read_text()
    await asyncio.to_thread(gateway.file.write_text, before + "routing: {harm: 1}\n")
    await gateway.app.reload()
    await asyncio.gather(*(gateway.chat(f"{number}", stream=True) for number in range(8)))
    await gateway.end()
    found = await asyncio.to_thread(lambda: list(looks(files_of(file))))
    report = replay(found)
    assert report.diverging == report.unused == 0, report.first
    assert report.final >= 14
    plans = [look.plan for look in found if isinstance(look, Recorded)]
    assert {plan.costs.harm for plan in plans} == {0.35, 1.0}
    assert any(request.tried for look in found if isinstance(look, Recorded) for request in look.requests)
    assert "SECRET" not in await asyncio.to_thread(file.read_text)
    assert file.stat().st_mode & 0o077 == 0

"""A gateway that is started again knows what the one before had learned, and wrote no text of anybody's down."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.shell.engine_double import says, vllm
from tests.shell.fixtures import Start

QUESTION, ANSWER = "what nobody else may read", "nor this"


async def test_what_was_learned_outlives_the_process(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "learned.jsonl"
    rest = f"learned: {{path: {path}, every: 1h}}"
    engine = vllm(says(ANSWER, *"abc"))
    first = await start({"b1": engine}, rest=rest)
    before = first.app.leases.experience.outputs
    for _ in range(12):
        assert (await first.chat(QUESTION, stream=True)).complete
    await first.idle()
    (key,) = [level for level in before.lengths if len(level) == 6]
    await first.app.close()
    kept = await asyncio.to_thread(path.read_bytes)
    assert QUESTION.encode() not in kept
    assert ANSWER.encode() not in kept
    assert b"127.0.0.1" not in kept
    second = await start({"b1": engine}, rest=rest)
    after = second.app.leases.experience
    assert after.outputs.lengths.keys() == before.lengths.keys()
    assert after.outputs.lengths[key].samples == 12
    # Of the same prompt again and again one count says all.
    assert after.tokens.models["tiny"].samples == first.app.leases.experience.tokens.models["tiny"].samples >= 1
    assert (await second.chat(QUESTION)).status == 200


async def test_a_file_that_can_t_be_used_stops_no_start(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "learned.jsonl"
    await asyncio.to_thread(path.write_bytes, b"\xff\x00 no such thing")
    gateway = await start({"b1": vllm(says("fine"))}, rest=f"learned: {{path: {path}}}")
    assert (await gateway.chat()).status == 200
    assert any("learning starts over" in str(line.get("message")) for line in await gateway.log_lines())
    assert await asyncio.to_thread((tmp_path / "learned.jsonl.unusable").exists)


async def test_without_a_path_nothing_is_written(start: Start, tmp_path: Path) -> None:
    gateway = await start({"b1": vllm(says("fine"))})
    assert (await gateway.chat()).status == 200
    await gateway.app.close()
    assert [each.name for each in await asyncio.to_thread(lambda: [*tmp_path.iterdir()])] == ["gateway0.yaml"]

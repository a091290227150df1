"""What was learned survives a restart; a file that can't be used never stops a start."""

from __future__ import annotations

import asyncio
import logging
import stat
from pathlib import Path

import pytest

from gateway.core.estimators.output_length import OutputKey
from gateway.core.experience import Experience
from gateway.edge.remembering import Remembering

KEY = OutputKey("m", "c", "m")


def teach(experience: Experience, length: int = 40) -> None:
    for _ in range(200):
        experience.outputs.learn(KEY, length, True, 0.0)
        experience.lessons += 1


async def restarted(path: Path) -> Experience:
    experience = Experience()
    remembering = Remembering(path, experience, 3600.0)
    await remembering.start()
    await remembering.stop()
    return experience


async def keep(path: Path, length: int = 40) -> Experience:
    """One run in which answers of that length were learned from."""
    experience = Experience()
    remembering = Remembering(path, experience, 3600.0)
    await remembering.start()
    teach(experience, length)
    await remembering.stop()
    return experience


async def test_a_restart_forgets_nothing(tmp_path: Path) -> None:
    path = tmp_path / "deeper" / "learned.jsonl"
    before = await keep(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["learned.jsonl"]
    after = await restarted(path)
    assert after.outputs.quantile(0.9, KEY) == before.outputs.quantile(0.9, KEY)


async def test_it_is_written_every_so_often_and_only_when_something_was_learned(tmp_path: Path) -> None:
    path, experience = tmp_path / "learned.jsonl", Experience()
    remembering = Remembering(path, experience, 0.01)
    await remembering.start()
    try:
        await asyncio.sleep(0.05)
        assert not path.exists()
        teach(experience)
        for _ in range(1000):
            if path.exists():
                break
            await asyncio.sleep(0.01)
        await remembering.save()
        written = path.stat().st_mtime_ns
        await asyncio.sleep(0.05)
        assert path.stat().st_mtime_ns == written
    finally:
        await remembering.stop()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data.replace(b'"kvgate_learned":1', b'"kvgate_learned":99'),
        lambda data: data.replace(b'"weight":', b'"weight":-'),
        lambda data: b"\x00" * 100,
        lambda data: data + b'{"lengths":null}\n',
        lambda data: data.splitlines()[0].replace(b'"records":4', b'"records":0') + b"\n\n{}\n",
    ],
    ids=["empty", "cut short", "another version", "numbers out of range", "no text", "a record more", "other lines"],
)
async def test_a_damaged_file_is_set_aside_with_a_warning(
    tmp_path: Path, damage: object, caplog: pytest.LogCaptureFixture
) -> None:
    assert callable(damage)
    path = tmp_path / "learned.jsonl"
    await keep(path)
    path.write_bytes(damage(path.read_bytes()))
    with caplog.at_level(logging.WARNING, "kvgate"):
        experience = await restarted(path)
    assert experience.outputs.quantile(0.5, KEY) == Experience().outputs.quantile(0.5, KEY)
    assert not path.exists()
    assert (tmp_path / "learned.jsonl.unusable").exists()
    assert "learning starts over" in caplog.text
    again = await keep(path)
    assert (await restarted(path)).outputs.quantile(0.9, KEY) == again.outputs.quantile(0.9, KEY)


async def test_what_can_t_be_read_or_written_costs_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "learned.jsonl"
    path.mkdir()
    with caplog.at_level(logging.WARNING, "kvgate"):
        await keep(path)
    assert "can't be read" in caplog.text
    assert "can't be kept" in caplog.text


async def test_a_half_written_file_is_none(tmp_path: Path) -> None:
    path = tmp_path / "learned.jsonl"
    before = await keep(path)
    (tmp_path / "learned.jsonl.new").write_bytes(b"half of a new one")
    assert (await restarted(path)).outputs.quantile(0.9, KEY) == before.outputs.quantile(0.9, KEY)
    await keep(path, 4000)
    assert (await restarted(path)).outputs.quantile(0.9, KEY) > 3000

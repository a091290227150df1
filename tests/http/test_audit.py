"""A line for each request that left the premises, and for each that was kept from leaving."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.relay.fake_engine import raw
from tests.shell.engine_double import openai_compatible, says, vllm
from tests.shell.fixtures import Start

AWAY = {"location": "off-prem", "clearance": "internal", "models": "[{id: tiny, context: 4096}]"}
KEYS = """auth:
  keys:
    - {name: lawyers, key: sk-lawyers-0123456789, data: confidential}
    - {name: press, key: sk-press-01234567890}
"""


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_who_left_and_who_was_kept(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    engines = {"house": vllm(says("at home")), "hosted": openai_compatible(says("away"), model="tiny")}
    gateway = await start(engines, rest=f"{KEYS}telemetry: {{audit: {{path: {file}}}}}", hosted=AWAY)
    press = {"authorization": "Bearer sk-press-01234567890"}
    lawyers = {"authorization": "Bearer sk-lawyers-0123456789"}
    secret = {"model": "tiny", "messages": [{"role": "user", "content": "SECRET-WORD"}]}
    kept = await gateway.ask(secret, **lawyers)
    assert kept.headers["x-kvgate-backend"] == "house"
    engines["house"].now_plays(raw(then="reset"))
    left = await gateway.ask(secret, **press)
    assert left.headers["x-kvgate-backend"] == "hosted"
    refused = await gateway.ask(secret, **lawyers)
    assert refused.status >= 500
    assert len(engines["hosted"].asked) == 1
    await gateway.end()
    found = await asyncio.to_thread(lines, file)
    told = [(line["event"], line["client"], line["label"], line["backends"]) for line in found]
    assert told.count(("left", "press", "internal", ["hosted"])) == 1
    assert ("kept", "lawyers", "confidential", ["hosted"]) in told
    assert not [line for line in told if line[0] == "left" and line[1] == "lawyers"]
    assert {line["request"] for line in found} >= {left.headers["x-kvgate-decision"], kept.headers["x-kvgate-decision"]}
    text = await asyncio.to_thread(file.read_text)
    assert "SECRET" not in text
    assert "sk-" not in text


async def test_nobody_leaves_a_house_without_a_way_out(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    gateway = await start({"house": vllm(says("at home"))}, rest=f"telemetry: {{audit: {{path: {file}}}}}")
    assert (await gateway.chat()).status == 200
    await gateway.end()
    assert not file.exists() or not lines(file)

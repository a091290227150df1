"""Prompts of an isolated key are cached apart from those of others (known failure K6)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.shell.engine_double import EngineDouble, llama_cpp, says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import Running

KEYS = """auth:
  keys:
    - {name: one, key: key-of-one-0001, isolated: true}
    - {name: two, key: key-of-two-0002, isolated: true}
    - {name: open, key: key-of-open-003}
"""
ONE, TWO, OPEN = "key-of-one-0001", "key-of-two-0002", "key-of-open-003"


async def salts(gateway: Running, engine: EngineDouble, *keys: str, path: str = "/v1/chat/completions") -> list[Any]:
    found = []
    for key in keys:
        body = {"model": "tiny", "cache_salt": "mine", "messages": [{"role": "user", "content": "hi"}], "prompt": "hi"}
        reply = await gateway.ask(body, path, authorization=f"Bearer {key}")
        assert reply.status == 200
        found.append(engine.body().get("cache_salt"))
    return found


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
async def test_k6_every_isolated_key_has_a_salt_of_its_own_and_nobody_chooses_it(start: Start, path: str) -> None:
    engine = vllm(says("ok", prompt=7), model="tiny")
    gateway = await start({"b1": engine}, rest=KEYS)
    one, two, again, open_ = await salts(gateway, engine, ONE, TWO, ONE, OPEN, path=path)
    assert one == again
    assert len({one, two, "mine", None}) == 4
    assert open_ is None
    assert not any(ONE in str(each) for each in (one, two))
    engine2 = vllm(says("ok", prompt=7), model="tiny")
    other = await start({"b1": engine2}, rest=KEYS)
    assert await salts(other, engine2, ONE, path=path) == [one]  # all gateways agree


async def test_an_engine_without_salts_is_sent_none(start: Start) -> None:
    engine = llama_cpp(says("ok", prompt=7), model="tiny")
    gateway = await start({"b1": engine}, rest=KEYS)
    assert await salts(gateway, engine, OPEN) == ["mine"]
    (said,) = await salts(gateway, engine, ONE)
    assert said == "mine"  # a member that llama.cpp doesn't know, so it passes as others do


async def test_a_surface_without_salts_is_translated_for_an_isolated_key(start: Start) -> None:
    engine = vllm(says("ok", prompt=7), model="tiny")
    gateway = await start({"b1": engine}, rest=KEYS)
    body = {"model": "tiny", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
    for key, path in ((ONE, "/v1/chat/completions"), (OPEN, "/v1/messages")):
        await gateway.ask(body, "/v1/messages", authorization=f"Bearer {key}")
        assert engine.asked[-1].line.split()[1] == path

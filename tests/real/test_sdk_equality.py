"""What the real OpenAI SDK sees through kvgate equals what it sees talking to the engine, field for field."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest
import pytest_asyncio

from gateway.local.launch import LlamaServer
from tests.real.conftest import TOOLS_TEMPLATE
from tests.real.gateway_process import backend, serving

CHAT: dict[str, Any] = {
    "model": "tiny",
    "messages": [{"role": "system", "content": "Short."}, {"role": "user", "content": "Name three colours."}],
    "max_tokens": 16,
    "temperature": 0,
    "seed": 7,
}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "colour",
        "schema": {
            "type": "object",
            "properties": {"name": {"type": "string", "enum": ["red", "green"]}, "warm": {"type": "boolean"}},
            "required": ["name", "warm"],
            "additionalProperties": False,
        },
    },
}
CASES: dict[str, dict[str, Any]] = {
    "chat": {},
    "tools": {"tools": [TOOL], "tool_choice": "auto"},
    "tools-required": {"tools": [TOOL], "tool_choice": "required", "max_tokens": 60},
    "json-schema": {"response_format": SCHEMA, "max_tokens": 60},
    "logprobs": {"logprobs": True, "top_logprobs": 3},
    "two-choices": {"n": 2},
    "stop-string": {"stop": ["e", "\n"]},
    "extra-field": {"extra_body": {"min_p": 0.1, "x_unknown": [1, {"a": None}]}},
    "token-limit-by-its-new-name": {"max_tokens": openai.omit, "max_completion_tokens": 9},
}
MEASURED = {"timings"}
"""Fields whose numbers are measurements: their keys must agree, their values can't."""
NAMES = {"id", "created"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[str, str, str]]:
    """Two engines with a tool-aware template, and a gateway before them: (engine, engine, gateway) base URLs."""
    flags = ("--chat-template-file", str(TOOLS_TEMPLATE))
    east = LlamaServer(tiny_model, "tiny", context=8192, slots=2, flags=flags)
    west = LlamaServer(tiny_model, "tiny", context=4096, slots=2, flags=flags)
    async with east, west:
        # The engines are asked behind the gateway's back, too: which slot is warm then, they know best.
        lines = [backend(name, each.url, slots="{choose: false}") for name, each in (("east", east), ("west", west))]
        async with serving(tmp_path_factory.mktemp("pair"), lines) as gateway:
            yield f"{east.url}/v1", f"{west.url}/v1", f"{gateway.url}/v1"


def _plain(value: Any, key: str = "") -> Any:
    """Drop what differs from call to call by its nature; keep every key."""
    if key in MEASURED:
        return sorted(value) if isinstance(value, dict) else type(value).__name__
    if isinstance(value, dict):
        return {k: (type(v).__name__ if k in NAMES else _plain(v, k)) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(item, key) for item in value]
    return value


async def _whole(base: str, case: dict[str, Any]) -> Any:
    async with openai.AsyncOpenAI(base_url=base, api_key="unused", max_retries=0) as client:
        answer = await client.chat.completions.create(**{**CHAT, **case})
        return _plain(answer.model_dump(exclude_unset=True))


async def _streamed(base: str, case: dict[str, Any]) -> list[Any]:
    async with openai.AsyncOpenAI(base_url=base, api_key="unused", max_retries=0) as client:
        stream = await client.chat.completions.create(stream=True, **{**CHAT, **case})
        return [_plain(chunk.model_dump(exclude_unset=True)) async for chunk in stream]


def _by_choice(chunks: list[Any]) -> dict[Any, list[Any]]:
    """With several choices their chunks interleave by chance; each choice's own order is what must agree."""
    lanes: dict[Any, list[Any]] = {}
    for chunk in chunks:
        index = chunk["choices"][0]["index"] if chunk["choices"] else "usage"
        lanes.setdefault(index, []).append(chunk)
    return lanes


@pytest.mark.parametrize("name", CASES)
@pytest.mark.asyncio(loop_scope="module")
async def test_whole_answers_are_equal(pair: tuple[str, str, str], name: str) -> None:
    east, west, gateway = pair
    case = CASES[name]
    for engine in (east, west):  # the same prefix is cached wherever the request may go
        await _whole(engine, case)
    direct = await _whole(east, case)
    assert await _whole(gateway, case) == direct


@pytest.mark.parametrize("usage", [False, True], ids=["plain", "with-usage"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.asyncio(loop_scope="module")
async def test_streams_are_equal(pair: tuple[str, str, str], name: str, usage: bool) -> None:
    east, west, gateway = pair
    case = {**CASES[name], **({"stream_options": {"include_usage": True}} if usage else {})}
    for engine in (east, west):
        await _streamed(engine, case)
    direct = _by_choice(await _streamed(east, case))
    through = _by_choice(await _streamed(gateway, case))
    assert through == direct
    assert ("usage" in through) is usage


@pytest.mark.asyncio(loop_scope="module")
async def test_text_completions_are_equal(pair: tuple[str, str, str]) -> None:
    east, west, gateway = pair

    async def ask(base: str, **more: Any) -> Any:
        async with openai.AsyncOpenAI(base_url=base, api_key="unused", max_retries=0) as client:
            answer = await client.completions.create(
                model="tiny", prompt="Once upon a time", max_tokens=12, temperature=0, seed=3, **more
            )
            return _plain(answer.model_dump(exclude_unset=True))

    for more in ({}, {"stop": ["a"]}, {"logprobs": 2}):
        for engine in (east, west):
            await ask(engine, **more)
        assert await ask(gateway, **more) == await ask(east, **more)


@pytest.mark.asyncio(loop_scope="module")
async def test_errors_reach_the_sdk_as_their_types(pair: tuple[str, str, str]) -> None:
    _, _, gateway = pair
    async with openai.AsyncOpenAI(base_url=gateway, api_key="unused", max_retries=0) as client:
        with pytest.raises(openai.NotFoundError) as unknown:
            await client.chat.completions.create(**{**CHAT, "model": "nobody"})
        assert unknown.value.code == "model_not_found"
        too_long = [{"role": "user", "content": "word " * 40_000}]
        with pytest.raises(openai.BadRequestError) as long:
            await client.chat.completions.create(**{**CHAT, "messages": too_long})
        assert long.value.code == "context_length_exceeded"
        assert "maximum context length is" in str(long.value)
        models = await client.models.list()
        assert [model.id for model in models.data] == ["tiny"]
        assert (await client.models.retrieve("tiny")).id == "tiny"

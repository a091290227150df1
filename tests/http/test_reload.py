from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from gateway.core.snapshot import Health
from tests.edge.wire_client import WireClient
from tests.shell.engine_double import EngineDouble, llama_cpp, says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import backend, chat, config, text_of

AUTH = "auth: {{keys: [{{name: k, key: {}}}]}}"


def line(name: str, engine: EngineDouble, **more: str) -> str:
    return backend(name, engine.url, engine.flavour, **more)


async def test_a_replaced_backend_is_drained_and_forgotten(start: Start) -> None:
    free = asyncio.Event()
    one, two = vllm(says("a", "b", until=free)), vllm(says("fine"))
    async with two:
        gateway = await start({"b1": one})
        client = await gateway.begin_chat(stream=True)
        await client.head()
        reply = await gateway.reload(config(line("b2", two)))
        assert (reply.status, reply.json["backends"]) == (200, ["b2"])
        await gateway.up("b2")
        assert gateway.health("b1") is Health.DRAINING
        assert (await gateway.chat()).headers["x-kvgate-backend"] == "b2"
        await asyncio.sleep(0.3)
        probed = len(one.probed)
        await asyncio.sleep(0.5)  # more than two probe intervals
        assert len(one.probed) == probed
        assert len(one.asked) == 1
        free.set()
        body = b""
        while data := await client.chunk():
            body += data
        assert text_of(body) == "ab"
        await gateway.idle()
        assert gateway.health("b1") is None
        assert "b1" not in await gateway.metrics()
        assert [row["name"] for row in (await gateway.admin("/admin/backends"))["backends"]] == ["b2"]
        await one.left()


async def test_the_same_name_may_listen_elsewhere_from_now_on(start: Start) -> None:
    free = asyncio.Event()
    old, new = vllm(says("o", "ld", until=free)), vllm(says("new"))
    async with new:
        gateway = await start({"b1": old})
        client = await gateway.begin_chat(stream=True)
        await client.head()
        assert (await gateway.reload(config(line("b1", new)))).status == 200
        await gateway.up("b1")
        reply = await gateway.chat(stream=True)
        assert text_of(reply.body) == "new"
        free.set()
        body = b""
        while data := await client.chunk():
            body += data
        assert text_of(body) == "old"
        probed = len(old.probed)
        await asyncio.sleep(0.5)
        assert len(old.probed) == probed
        await old.left()


async def test_a_broken_file_changes_nothing_and_says_where_it_is_broken(start: Start) -> None:
    engine = vllm(says("fine"))
    gateway = await start({"b1": engine})
    good = await asyncio.to_thread(gateway.file.read_text)
    assert await gateway.value("kvgate_config_stale") == 0
    for text, number in (
        (good + "queue:\n\tlength: 3\n", good.count("\n") + 2),
        (good + "quue: {length: 3}\n", good.count("\n") + 1),
        (good.replace("engine: vllm", "engine: vlm"), 3),
        (good + "queue: {wait: 5}\n", good.count("\n") + 1),
    ):
        reply = await gateway.reload(text)
        assert reply.status == 422
        assert f"{gateway.file.name}:{number}" in reply.error["message"], reply.error["message"]
        assert await gateway.value("kvgate_config_stale") == 1
        assert (await gateway.chat()).status == 200
    assert (await gateway.reload(good)).status == 200
    assert await gateway.value("kvgate_config_stale") == 0
    assert any("reload refused" in str(entry.get("message")) for entry in await gateway.log_lines())


async def test_a_file_that_is_half_good_is_not_half_applied(start: Start) -> None:
    one, two = vllm(says("fine")), vllm(says("fine"), model="other")
    async with two:
        gateway = await start({"b1": one})
        text = config(line("b1", one), line("b2", two), rest="models: [{name: m, serves: nobody-has-this}]")
        two_declared = text.replace("engine: vllm", "engine: vllm, models: [{id: x, served_as: x}]")
        assert (await gateway.reload(two_declared)).status == 422
        assert [row["name"] for row in (await gateway.admin("/admin/backends"))["backends"]] == ["b1"]
        assert two.probed == []


async def test_g3_a_lowered_limit_is_kept_as_running_requests_end_and_kills_nobody(start: Start) -> None:
    events = [asyncio.Event() for _ in range(8)]
    engine = llama_cpp(*(says("a", "b", until=event) for event in events), says("late"), slots=8)
    gateway = await start({"b1": engine})
    clients = [await gateway.begin_chat(f"{n}", model="smollm2", stream=True) for n in range(8)]
    await engine.asked_for(8)
    assert (await gateway.reload(config(line("b1", engine, running="2")))).status == 200
    late = asyncio.create_task(gateway.chat("late", model="smollm2"))
    await gateway.until(lambda: gateway.queued == 1)
    for number, event in enumerate(events[:6]):
        event.set()
        await gateway.until(lambda n=number: gateway.running == 7 - n)
        assert not late.done()
        assert len(engine.asked) == 8
    events[6].set()
    assert (await late).status == 200
    events[7].set()
    assert [(await client.reply()).complete for client in clients] == [True] * 8


async def test_a_shorter_queue_turns_away_the_next_and_keeps_those_who_wait(start: Start) -> None:
    free = asyncio.Event()
    engine = vllm(says("a", "b", until=free))
    gateway = await start({"b1": engine}, b1={"running": "1"})
    held = [await gateway.begin_chat(f"{n}", stream=True) for n in range(4)]
    await gateway.until(lambda: gateway.queued == 3)
    assert (await gateway.reload(config(line("b1", engine, running="1"), rest="queue: {length: 1}"))).status == 200
    assert (await gateway.chat()).status == 429
    assert gateway.queued == 3
    free.set()
    assert [(await client.reply()).status for client in held] == [200] * 4


async def test_keys_change_at_once(start: Start) -> None:
    engine = vllm(says("fine"))
    gateway = await start({"b1": engine}, rest=AUTH.format("old-key-12345"))
    assert (await gateway.ask(chat(), authorization="Bearer old-key-12345")).status == 200
    assert (await gateway.reload(config(line("b1", engine), rest=AUTH.format("new-key-12345")))).status == 200
    assert (await gateway.ask(chat(), authorization="Bearer old-key-12345")).status == 401
    assert (await gateway.ask(chat(), authorization="Bearer new-key-12345")).status == 200
    for key in (b"old-key-12345", b"new-key-12345"):
        assert key not in gateway.lines.data


async def test_an_engines_key_changes_with_the_next_request(start: Start) -> None:
    engine = vllm(says("fine"))
    gateway = await start({"b1": engine}, b1={"key": "first-upstream-key"})
    await gateway.chat()
    assert (await gateway.reload(config(line("b1", engine, key="second-upstream-key")))).status == 200
    await gateway.chat()
    sent = [request.values("authorization") for request in engine.asked]
    assert sent == [["Bearer first-upstream-key"], ["Bearer second-upstream-key"]]


async def test_a_timeout_changes_with_the_next_request_and_what_was_learned_stays(start: Start) -> None:
    engine = vllm(says("fine"))
    gateway = await start({"b1": engine})
    await gateway.chat()
    facts = gateway.app.roster["b1"].facts
    assert (await gateway.reload(config(line("b1", engine, timeouts="{first_token: 3s}")))).status == 200
    assert gateway.app.switchboard["b1"].limits.first_token_s == 3
    assert gateway.app.roster["b1"].facts is facts
    assert gateway.health("b1") is Health.UP


async def test_many_reloads_under_load_lose_no_request(start: Start) -> None:
    engine = vllm(says("a", "b", gap=0.005))
    gateway = await start({"b1": engine})
    texts = [config(line("b1", engine, running=str(2 + n % 3))) for n in range(6)]

    async def reloads() -> None:
        for text in texts:
            assert (await gateway.reload(text)).status == 200

    replies = await asyncio.gather(reloads(), *(gateway.chat(f"{n}", stream=True) for n in range(40)))
    assert {reply.status for reply in replies[1:] if reply is not None} == {200}


@pytest.mark.slow
async def test_a_hangup_reloads_the_process_that_serves(tmp_path: Path) -> None:
    """The signal, in a process of its own: the rest of the story is told above."""
    one, two = vllm(says("one")), vllm(says("two"))
    async with one, two:
        file = tmp_path / "gateway.yaml"
        port, admin = await free_port(), await free_port()
        places = {"127.0.0.1:0, admin": f"127.0.0.1:{port}, admin", "admin: 127.0.0.1:0": f"admin: 127.0.0.1:{admin}"}

        def write(text: str) -> None:
            for old, new in places.items():
                text = text.replace(old, new)
            file.write_text(text)

        await asyncio.to_thread(write, config(line("b1", one)))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway.cli", "serve", str(file), stderr=asyncio.subprocess.PIPE
        )
        try:
            assert await answers(port, "one")
            await asyncio.to_thread(write, config(line("b2", two)))
            os.kill(process.pid, signal.SIGHUP)
            assert await answers(port, "two")
            await asyncio.to_thread(file.write_text, "backends: 3")
            os.kill(process.pid, signal.SIGHUP)
            assert process.stderr is not None
            async with asyncio.timeout(10):
                while b"reload refused" not in await process.stderr.readline():
                    pass
            assert await answers(port, "two")
            process.terminate()
            assert await asyncio.wait_for(process.wait(), 15) == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def free_port() -> int:
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = int(server.sockets[0].getsockname()[1])
    server.close()
    await server.wait_closed()
    return port


async def answers(port: int, text: str, seconds: float = 15.0) -> bool:
    """Whether the gateway there comes to answer so."""
    body = json.dumps(chat()).encode()
    async with asyncio.timeout(seconds):
        while True:
            try:
                client = await WireClient.connect(port)
                reply = await client.request("POST", "/v1/chat/completions", body)
                client.close()
                if reply.status == 200 and reply.json["choices"][0]["message"]["content"] == text:
                    return True
            except (OSError, asyncio.IncompleteReadError):
                pass
            await asyncio.sleep(0.05)

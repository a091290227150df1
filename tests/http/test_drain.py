"""A backend that is drained by hand gets nothing new; what runs there ends, and conversations go on elsewhere."""

from __future__ import annotations

import asyncio
import json

import pytest

from gateway.cli.main import main
from tests.edge.wire_client import WireClient
from tests.shell.engine_double import says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import backend, config


async def drained(admin: int, *words: str) -> int:
    return await asyncio.to_thread(main, ["drain", *words, "--admin", f"http://127.0.0.1:{admin}"])


async def test_what_runs_ends_and_the_next_turn_goes_elsewhere(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    free = asyncio.Event()
    one, other = vllm(says("a", "b", until=free)), vllm(says("ok"))
    gateway = await start({"b1": one, "b2": other}, b2={"running": "1"})
    held: list[WireClient] = []
    while not one.asked:
        held.append(await gateway.begin_chat("x" * len(held), stream=True))
        await gateway.until(lambda: len(one.asked) + len(other.asked) == len(held))
    assert await drained(gateway.admin_port, "b1") == 0
    assert "b1 gets nothing new; 1 still run there" in capsys.readouterr().out
    assert gateway.health("b1") == "draining"
    before = len(one.asked)
    for _ in range(4):
        assert (await gateway.chat("hi")).status == 200
    assert len(one.asked) == before
    waiting = asyncio.create_task(drained(gateway.admin_port, "b1", "--wait", "20s", "--json"))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    free.set()
    assert all([(await client.reply()).complete for client in held])
    assert await waiting == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["running"], row["kept_from_new_requests"], row["health"]) == (0, True, "draining")


async def test_it_is_taken_back_and_outlives_a_reload_until_then(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = vllm(says("ok"))
    gateway = await start({"b1": engine})
    assert await drained(gateway.admin_port, "b1") == 0
    assert (await gateway.reload()).status == 200
    refused = await gateway.chat("hi")
    assert refused.status == 503
    assert engine.asked == []
    assert await drained(gateway.admin_port, "b1", "--undo") == 0
    assert "b1 gets requests again" in capsys.readouterr().out
    assert (await gateway.chat("hi")).status == 200


async def test_who_waits_goes_on_as_soon_as_it_is_taken_back(start: Start) -> None:
    free = asyncio.Event()
    one, other = vllm(says("ok")), vllm(says("a", until=free))
    gateway = await start({"b1": one, "b2": other}, b2={"running": "1"})
    await drained(gateway.admin_port, "b1")
    held = [await gateway.begin_chat("runs", stream=True)]
    await other.asked_for(1)
    held.append(await gateway.begin_chat("waits", stream=True))
    await gateway.until(lambda: gateway.queued == 1)
    await drained(gateway.admin_port, "b1", "--undo")
    assert (await held[1].reply()).complete
    free.set()
    assert (await held[0].reply()).complete


async def test_one_that_a_reload_removed_can_be_waited_for_and_comes_back_by_the_file_alone(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    free = asyncio.Event()
    one, other = vllm(says("a", "b", until=free)), vllm(says("ok"))
    async with other:
        gateway = await start({"b1": one})
        held = await gateway.begin_chat(stream=True)
        await held.head()
        assert (await gateway.reload(config(backend("b2", other.url, other.flavour)))).status == 200
        assert await gateway.value('kvgate_backend_state{backend="b1",state="draining"}') == 1.0
        assert await drained(gateway.admin_port, "b1", "--undo") == 1
        assert "b1 was removed from the file" in capsys.readouterr().err
        waiting = asyncio.create_task(drained(gateway.admin_port, "b1", "--wait"))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        free.set()
        while await held.chunk():
            pass
        assert await waiting == 0
        assert "nothing runs there" in capsys.readouterr().out
        assert gateway.health("b1") is None


async def test_a_name_that_is_none_and_a_port_that_is_no_admins(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = await start({"b1": vllm()})
    assert await drained(gateway.admin_port, "b/2") == 1
    assert capsys.readouterr().err == "kvgate drain: there is no such backend; known here: b1\n"
    assert await drained(gateway.port, "b1") == 2


async def test_a_page_of_another_site_can_not_drain(start: Start) -> None:
    gateway = await start({"b1": vllm()})
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.admin_port)
    writer.write(
        b"POST /admin/backends/b1/drain HTTP/1.1\r\nHost: evil.test\r\nOrigin: http://evil.test\r\n"
        b"Content-Length: 0\r\nConnection: close\r\n\r\n"
    )
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 403")
    assert gateway.health("b1") == "up"

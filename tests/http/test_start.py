from __future__ import annotations

import asyncio

from gateway.core.snapshot import Health
from tests.shell.engine_double import page, says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import backend, config


async def test_a_backend_that_is_not_there_at_the_start_is_marked_down_and_used_when_it_appears(start: Start) -> None:
    absent = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = int(absent.sockets[0].getsockname()[1])
    absent.close()
    await absent.wait_closed()
    text = config(backend("b1", f"http://127.0.0.1:{port}"))
    gateway = await start({}, text=text, up=False)
    await gateway.until(lambda: gateway.health("b1") is Health.DOWN)
    (row,) = (await gateway.admin("/admin/backends"))["backends"]
    assert (row["state"], row["error"]) == ("down", "Connection refused")
    said = [line for line in await gateway.log_lines() if "b1" in str(line.get("message"))]
    assert said[0]["level"] == "warning"
    assert "unreachable" in said[0]["message"]
    assert (await gateway.get("/health/ready")).status == 200
    reply = await gateway.chat()
    assert (reply.status, reply.error["code"]) == (503, "model_not_known_yet")
    engine = vllm(says("here now"))
    engine._server = await asyncio.start_server(engine._serve, "127.0.0.1", port)
    async with asyncio.timeout(3):
        await gateway.up("b1")
    assert (await gateway.chat()).status == 200
    await engine.__aexit__()


async def test_one_absent_backend_does_not_keep_the_others_from_serving(start: Start) -> None:
    engine = vllm(says("fine"))
    async with engine:
        text = config(backend("b1", "http://127.0.0.1:9"), backend("b2", engine.url))
        gateway = await start({}, text=text, up=False)
        await gateway.up("b2")
        assert (await gateway.chat()).status == 200
        assert gateway.health("b1") is Health.DOWN
        reply = await gateway.chat(model="a-typing-error")
        assert (reply.status, reply.error["code"]) == (404, "model_not_found")


async def test_an_engine_whose_pages_make_no_sense_is_served_with_what_is_known(start: Start) -> None:
    engine = vllm(says("fine"))
    engine.pages |= {"/metrics": page(b"\x00\xff not metrics {{{"), "/version": page(b"<html>", kind="text/html")}
    gateway = await start({"b1": engine})
    assert (await gateway.chat()).status == 200


async def test_an_engine_that_comes_back_with_another_model_is_asked_for_that_one(start: Start) -> None:
    engine = vllm(says("fine"), model="old")
    gateway = await start({"b1": engine})
    assert (await gateway.chat(model="old")).status == 200
    pages, port = engine.pages, int(engine.url.rpartition(":")[2])
    await engine.__aexit__()
    await gateway.until(lambda: gateway.health("b1") is Health.DOWN)
    engine.pages = pages | {"/v1/models": vllm(model="new").pages["/v1/models"]}
    engine._server = await asyncio.start_server(engine._serve, "127.0.0.1", port)
    await gateway.up("b1")
    assert (await gateway.chat(model="new")).status == 200
    assert (await gateway.chat(model="old")).status == 404

from __future__ import annotations

import asyncio
import socket

from gateway import clock
from gateway.core.snapshot import Health
from tests.recordings import recording
from tests.relay.fake_engine import json_answer, silent
from tests.shell.engine_double import llama_cpp, page, says, vllm, vllm_metrics
from tests.shell.fixtures import Start
from tests.shell.running import text_of

LOADING = recording("llama.cpp", "loading_chat")


async def test_h1_an_engine_that_lists_models_but_answers_nothing_is_out_until_a_completion_succeeds(
    start: Start,
) -> None:
    engines = {"b1": vllm(silent()), "b2": vllm(says("fine"))}
    gateway = await start(
        engines,
        b1={"timeouts": "{first_token: 100ms}"},
        b2={"device": "dgx-spark"},
        rest="health: {probe: 200ms, breaker: {failures: 2, open: 700ms}}",
    )
    for number in range(30):
        reply = await gateway.chat(f"{number}", stream=True)
        assert reply.status == 200
        if gateway.health("b1") is Health.OPEN:
            break
    assert gateway.health("b1") is Health.OPEN
    probed, sent = len(engines["b1"].probed), len(engines["b1"].asked)
    await engines["b1"].until(lambda: len(engines["b1"].probed) > probed)  # and answers every probe with 200
    for number in range(5):
        assert (await gateway.chat(f"more {number}")).headers["x-kvgate-backend"] == "b2"
    assert len(engines["b1"].asked) == sent
    engines["b1"].now_plays(says("back"))
    await gateway.until(lambda: gateway.health("b1") is Health.TRIAL)
    await engines["b2"].__aexit__()
    await gateway.until(lambda: gateway.health("b2") is Health.DOWN)
    assert (await gateway.chat()).status == 200
    assert gateway.health("b1") is Health.UP


async def test_a_trial_that_fails_doubles_the_rest(start: Start) -> None:
    engines = {"b1": vllm(silent()), "b2": vllm(says("fine"))}
    limit = {"timeouts": "{first_token: 80ms}"}
    rest = "health: {breaker: {failures: 1, open: 300ms}}"
    gateway = await start(engines, b1=limit, b2={"device": "dgx-spark"}, rest=rest)

    async def until_out() -> float:
        for number in range(200):
            await gateway.chat(f"{number}", stream=True)
            if gateway.health("b1") is Health.OPEN:
                return clock.monotonic()
        raise AssertionError("never out")

    await until_out()
    await gateway.until(lambda: gateway.health("b1") is Health.TRIAL)
    began = await until_out()
    await gateway.until(lambda: gateway.health("b1") is Health.TRIAL)
    assert clock.monotonic() - began > 0.5


async def test_h2_a_probe_that_hangs_does_not_take_out_an_engine_that_delivers(start: Start) -> None:
    engine = vllm(says(*"abcdefghijklmnopqrst", gap=0.1))
    gateway = await start({"b1": engine}, rest="health: {probe: 500ms}")
    gateway.app.watch._pollers["b1"].timeout = 0.3
    client = await gateway.begin_chat(stream=True)
    await client.head()
    engine.pages = dict.fromkeys(engine.pages, silent())
    probed = len(engine.probed)
    reply_body = b""
    while data := await client.chunk():
        reply_body += data
        assert gateway.health("b1") is Health.UP
    assert text_of(reply_body) == "abcdefghijklmnopqrst"
    assert len(engine.probed) > probed + 1  # more than one of them timed out


async def test_h5_a_box_that_never_accepts_is_left_within_the_connect_limit(start: Start) -> None:
    engines = {"b1": vllm(says("fine")), "b2": vllm(says("fine"))}
    gateway = await start(engines, b1={"timeouts": "{connect: 300ms}"}, b2={"device": "dgx-spark"})
    with socket.socket() as full:
        # A listener whose queue is full: the kernel drops what else would connect, like a box that hangs.
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        blockers = [socket.socket() for _ in range(4)]
        for blocker in blockers:
            blocker.setblocking(False)
            blocker.connect_ex(full.getsockname())
        gateway.app.switchboard["b1"].pool._port = full.getsockname()[1]
        began = clock.monotonic()
        replies = await asyncio.gather(*(gateway.chat(f"{n}") for n in range(6)))
        assert clock.monotonic() - began < 2
        assert {reply.status for reply in replies} == {200}
        assert {reply.headers["x-kvgate-backend"] for reply in replies} == {"b2"}
        for blocker in blockers:
            blocker.close()


async def test_h7_metrics_that_vanish_change_nothing_about_what_is_admitted(start: Start) -> None:
    engine = vllm(says("fine"))
    gateway = await start({"b1": engine}, b1={"running": "2"}, rest="health: {probe: 500ms}")
    await gateway.until(lambda: gateway.app.roster["b1"].observer.load is not None)
    engine.pages["/metrics"] = page({"detail": "Not Found"}, 404)
    probed = len(engine.probed)
    await engine.until(lambda: len(engine.probed) >= probed + 2)
    assert gateway.health("b1") is Health.UP
    replies = await asyncio.gather(*(gateway.chat(f"{n}") for n in range(6)))
    assert {reply.status for reply in replies} == {200}
    assert engine.most_busy == 2
    assert await gateway.value('kvgate_backend_load_known{backend="b1"}') == 0


async def test_h7_the_older_name_of_the_cache_usage_is_read_too(start: Start) -> None:
    engine = vllm()
    engine.pages["/metrics"] = vllm_metrics(
        usage=0.5, edit=lambda text: text.replace("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
    )
    gateway = await start({"b1": engine}, rest="health: {probe: 500ms}")
    await gateway.until(lambda: gateway.app.roster["b1"].observer.load is not None)
    load = gateway.app.roster["b1"].observer.load
    assert load is not None
    assert load.kv_usage == 0.5
    assert await gateway.value('kvgate_backend_load_known{backend="b1"}') == 1


async def test_h8_an_engine_that_loads_is_waited_for_and_not_blamed(start: Start) -> None:
    engine = llama_cpp(page(LOADING.body, 503))
    gateway = await start({"b1": engine}, rest="queue: {wait: 10s}")
    loaded = engine.pages
    engine.pages = dict.fromkeys(loaded, page(LOADING.body, 503))
    waits = asyncio.create_task(gateway.chat(model="smollm2", stream=True))
    await gateway.until(lambda: gateway.health("b1") is Health.LOADING)
    await asyncio.sleep(0.3)
    assert not waits.done()
    sent = len(engine.asked)
    engine.pages = loaded
    engine.now_plays(says("loaded"))
    reply = await waits
    assert reply.status == 200
    assert text_of(reply.body) == "loaded"
    assert sent <= 2
    assert gateway.health("b1") is Health.UP
    assert await gateway.value('kvgate_backend_failures_total{backend="b1",kind="server"}') == 0


async def test_h8_an_engine_that_is_loading_at_the_start_is_used_when_it_is_done(start: Start) -> None:
    engine = llama_cpp(says("loaded"))
    loaded = engine.pages
    engine.pages = dict.fromkeys(loaded, page(LOADING.body, 503))
    rest = "models: [{name: m, serves: smollm2}]"
    gateway = await start({"b1": engine}, up=False, rest=rest, b1={"models": "[smollm2]"})
    await gateway.until(lambda: gateway.health("b1") is Health.LOADING)
    waits = asyncio.create_task(gateway.chat(model="m"))
    await gateway.until(lambda: gateway.queued == 1)
    engine.pages = loaded
    assert (await waits).status == 200


async def test_the_last_backend_that_the_datas_label_allows_is_not_switched_off_either(start: Start) -> None:
    house = vllm(json_answer({"error": {"message": "x", "code": 500}}, 500))
    rest = "models: [{name: secret, serves: tiny, data: restricted}, {name: open, serves: tiny, data: public}]"
    gateway = await start(
        {"house": house, "cloud": vllm(says("fine"))}, cloud={"device": "dgx-spark", "clearance": "internal"}, rest=rest
    )
    for _ in range(6):
        reply = await gateway.chat(model="secret")
        assert (reply.status, reply.error["code"]) == (502, "upstream_status")
        assert 1 <= int(reply.headers["retry-after"]) <= 59
    assert gateway.health("house") is Health.UP
    house.now_plays(says("fine"))
    assert (await gateway.chat(model="secret")).status == 200


async def test_f6_the_last_backend_of_a_model_is_not_switched_off_by_what_may_pass(start: Start) -> None:
    engine = vllm(json_answer({"error": {"message": "x", "code": 500}}, 500))
    gateway = await start({"b1": engine})
    for _ in range(5):
        assert (await gateway.chat()).status == 502
    engine.now_plays(says("fine"))
    assert (await gateway.chat()).status == 200


async def test_h1_h3_a_question_of_one_token_at_a_time_tells_when_an_engine_is_back(start: Start) -> None:
    """Silent engine, green health: no client is sent there until it answers, and never two questions are open."""
    b1 = vllm(silent())
    engines = {"b1": b1, "b2": vllm(says("fine"))}
    gateway = await start(
        engines,
        b1={"timeouts": "{first_token: 100ms}"},
        b2={"device": "dgx-spark"},
        rest="health: {probe: 100ms, canary: true, breaker: {failures: 2, open: 1s}}",
    )
    for number in range(30):
        await gateway.chat(f"client {number}", stream=True)
        if gateway.health("b1") is Health.OPEN:
            break
    sent = len(b1.asked)
    await b1.asked_for(sent + 1)
    for number in range(20):  # longer than it would rest: without the question its time would come
        assert (await gateway.chat(f"client {number}", stream=True)).headers["x-kvgate-backend"] == "b2"
        await asyncio.sleep(0.06)
    questions = b1.asked[sent:]
    assert b1.busy == 1
    assert len(questions) == 1
    assert b"client" not in b"".join(request.body for request in questions)
    assert (b1.body()["max_tokens"], b1.body()["model"]) == (1, "tiny")
    assert gateway.running == 0
    assert gateway.health("b1") is Health.OPEN
    b1.now_plays(says("yes"))
    for task in gateway.app.watch._canary._asking.values():
        task.cancel()
    gateway.app.watch._answered("b1", False)  # as after its time
    await gateway.until(lambda: gateway.health("b1") is Health.TRIAL)
    assert len(b1.asked) == sent + 2
    for number in range(3):
        await gateway.chat(f"more {number}")
    assert gateway.health("b1") is Health.UP


async def test_h3_nobody_is_asked_where_the_file_does_not_say_so_nor_where_it_is_charged_for(start: Start) -> None:
    engines = {"b1": vllm(silent()), "b2": vllm(says("fine"))}
    away = {"location": "off-prem", "clearance": "internal", "timeouts": "{first_token: 100ms}"}
    for canary, first in (("false", {"timeouts": "{first_token: 100ms}"}), ("true", away)):
        rest = f"health: {{probe: 100ms, canary: {canary}, breaker: {{failures: 1, open: 5s}}}}"
        gateway = await start(engines, b1=first, b2={"device": "dgx-spark"}, rest=rest)
        for number in range(20):
            await gateway.chat(f"{number}", stream=True)
            if gateway.health("b1") is Health.OPEN:
                break
        sent, probed = len(engines["b1"].asked), len(engines["b1"].probed)
        await engines["b1"].until(lambda probed=probed: len(engines["b1"].probed) > probed + 2)  # type: ignore[misc]
        assert len(engines["b1"].asked) == sent
        await gateway.end()

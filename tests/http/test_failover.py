from __future__ import annotations

import asyncio

import pytest

from gateway import clock
from gateway.core.snapshot import Health
from tests.http.test_context import prose
from tests.relay.fake_engine import ROLE, Request, Script, Wire, json_answer, raw, silent, sse, token
from tests.shell.engine_double import EngineDouble, says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import chat, text_of

BROKEN = json_answer({"error": {"message": "boom", "type": "InternalServerError", "code": 500}}, 500)


SECOND = {"device": "dgx-spark"}
"""Slower than what `backend` declares, so that the other one is asked first."""


def asked(*engines: EngineDouble) -> list[int]:
    return [len(engine.asked) for engine in engines]


@pytest.mark.parametrize("stream", [True, False])
async def test_an_engine_that_fails_before_a_byte_is_replaced_unseen(start: Start, stream: bool) -> None:
    engines = {"b1": vllm(BROKEN), "b2": vllm(says("fine"))}
    gateway = await start(engines, b2=SECOND)
    replies = [await gateway.chat(f"{n}", stream=stream) for n in range(4)]
    assert {reply.status for reply in replies} == {200}
    assert {reply.headers["x-kvgate-backend"] for reply in replies} == {"b2"}
    assert asked(*engines.values()) == [3, 4]  # then it rests


async def test_a_long_prompt_whose_engine_died_is_read_again_elsewhere(start: Start) -> None:
    engines = {"b1": vllm(raw(then="reset"), window=131_072), "b2": vllm(says("fine"), window=131_072)}
    gateway = await start(engines, b2=SECOND)
    assert (await gateway.chat(prose(40_000), stream=True)).status == 200
    assert asked(*engines.values()) == [1, 1]


async def test_f1_nothing_is_tried_again_once_output_was_shown(start: Start) -> None:
    cut = sse(ROLE, *map(token, "abc"), end=False, then="reset")
    engines = {"b1": vllm(cut), "b2": vllm(cut)}
    gateway = await start(engines)
    reply = await gateway.chat(stream=True)
    assert text_of(reply.body) == "abc"
    assert sum(asked(*engines.values())) == 1


@pytest.mark.parametrize("tokens", [1000, 40_000])
async def test_f2_a_silent_engine_is_left_before_another_is_asked_and_only_for_short_prompts(
    start: Start, tokens: int
) -> None:
    left: list[str] = []
    engines: dict[str, EngineDouble] = {}

    def hangs(name: str) -> Script:
        async def script(_request: Request, wire: Wire) -> None:
            others = [e for n, e in engines.items() if n != name]
            assert not any(e.busy for e in others)  # the one before was let go first
            await wire.gone()
            left.append(name)

        return script

    for name in ("b1", "b2", "b3"):
        engines[name] = vllm(hangs(name), window=131_072)
    limit = {"timeouts": "{first_token: 200ms}", "queued_prefill": "60s"}
    gateway = await start(engines, b1=limit, b2=limit, b3=limit)
    reply = await gateway.chat(prose(tokens), stream=True)
    assert reply.status == 504
    expected = 2 if tokens == 1000 else 1
    assert sum(asked(*engines.values())) == expected
    assert len(left) == expected


@pytest.mark.parametrize("backends", [1, 2, 3])
@pytest.mark.parametrize(
    ("script", "status", "code"),
    [
        (BROKEN, 502, "upstream_status"),
        (raw(then="reset"), 502, "upstream_stream_broken"),
        (raw(b"\x00garbage\r\n\r\n", then="close"), 502, "upstream_stream_broken"),
    ],
)
async def test_one_kind_of_failure_has_one_answer_whoever_is_left_to_try(
    start: Start, backends: int, script: Script, status: int, code: str
) -> None:
    engines = {f"b{n}": vllm(script) for n in range(backends)}
    gateway = await start(engines, rest="health: {breaker: {failures: 3, open: 300ms}}")
    for number in range(14):
        reply = await gateway.chat(f"{number}")
        assert (reply.status, reply.error["code"]) == (status, code), number
        assert 1 <= int(reply.headers["retry-after"]) <= 59


@pytest.mark.parametrize("others", [[], ["b2"]])
async def test_an_engine_that_cant_be_reached_is_told_as_that_or_as_nobody_there(
    start: Start, others: list[str]
) -> None:
    engines = {name: vllm() for name in ["b1", *others]}
    gateway = await start(engines)
    for engine in engines.values():
        await engine.__aexit__()
    seen = set()
    for number in range(8):
        reply = await gateway.chat(f"{number}")
        seen.add((reply.status, reply.error["code"]))
        assert 1 <= int(reply.headers["retry-after"]) <= 59
    assert seen <= {(502, "upstream_connect_failed"), (503, "no_backend_available")}


async def test_all_that_ran_when_an_engine_died_are_served_by_another(start: Start) -> None:
    dies = asyncio.Event()

    async def mortal(_request: Request, wire: Wire) -> None:
        await dies.wait()
        wire.reset()

    engines = {"b1": vllm(mortal), "b2": vllm(says("fine"))}
    gateway = await start(
        engines,
        b1={"running": "64", "queued_prefill": "60s"},
        b2=SECOND | {"running": "4"},
        rest="retry: {budget: 1%}\nqueue: {length: 3}",
    )
    clients = [await gateway.begin_chat(f"{number}", stream=number % 2 == 0) for number in range(40)]
    await engines["b1"].asked_for(30)
    dies.set()
    assert engines["b1"]._server is not None
    engines["b1"]._server.close()
    replies = [await client.reply() for client in clients]
    assert {reply.status for reply in replies} == {200}
    assert {reply.headers["x-kvgate-backend"] for reply in replies} == {"b2"}


async def test_an_engine_that_resets_whatever_it_gets_does_not_double_the_traffic(start: Start) -> None:
    engines = {"b1": vllm(raw(then="reset")), "b2": vllm(raw(then="reset"))}
    gateway = await start(engines, rest="retry: {budget: 10%}\nhealth: {breaker: {failures: 100000}}")
    for number in range(10):
        await asyncio.gather(*(gateway.chat(f"{number}.{n}") for n in range(10)))
    assert sum(asked(*engines.values())) <= 100 + 30 + 10 + 5


async def test_f3_retries_are_a_bounded_share_of_all_requests(start: Start) -> None:
    engines = {"b1": vllm(BROKEN), "b2": vllm(BROKEN)}
    gateway = await start(engines, rest="retry: {attempts: 1, budget: 10%}\nhealth: {breaker: {failures: 100000}}")
    for _ in range(10):
        replies = await asyncio.gather(*(gateway.chat() for _ in range(10)))
        assert {reply.status for reply in replies} == {502}
    extra = sum(asked(*engines.values())) - 100
    assert 0 < extra <= 10 + 100 * 0.10 + 5


async def test_f3_one_request_is_tried_no_more_often_than_configured(start: Start) -> None:
    engines = {f"b{n}": vllm(BROKEN) for n in range(4)}
    gateway = await start(engines, rest="retry: {attempts: 1}")
    assert (await gateway.chat()).status == 502
    assert sum(asked(*engines.values())) == 2


async def test_f3_one_deadline_holds_over_queue_and_attempts(start: Start) -> None:
    engines = {"b1": vllm(silent()), "b2": vllm(silent())}
    limit = {"timeouts": "{first_token: 300ms}"}
    gateway = await start(engines, b1=limit, b2=limit, rest="queue: {wait: 200ms}")
    began = clock.monotonic()
    assert (await gateway.chat(stream=True)).status == 504
    assert clock.monotonic() - began < 0.6
    assert sum(asked(*engines.values())) == 1


async def test_f4_what_callers_do_wrong_takes_nobody_out(start: Start) -> None:
    engine = vllm()
    gateway = await start({"b1": engine})
    for status in (400, 413, 422) * 7:
        engine.now_plays(json_answer({"error": {"message": "bad", "type": "BadRequestError", "code": status}}, status))
        assert (await gateway.chat()).status == status
    assert gateway.health("b1") is Health.UP


async def test_f4_an_engine_that_refuses_our_own_key_is_out_and_the_client_is_not_blamed(start: Start) -> None:
    engine = vllm(json_answer({"error": {"message": "Unauthorized", "code": 401}}, 401))
    gateway = await start({"b1": engine}, b1={"key": "wrong-upstream-key"}, rest="health: {breaker: {open: 60s}}")
    reply = await gateway.chat()
    assert reply.status == 502
    assert gateway.health("b1") is Health.OPEN
    assert await gateway.value('kvgate_backend_failures_total{backend="b1",kind="credentials"}') == 1
    assert b"wrong-upstream-key" not in gateway.lines.data + reply.body


async def test_f5_a_poisonous_request_kills_no_more_than_two_engines(start: Start) -> None:
    engines: dict[str, EngineDouble] = {}

    def mortal(name: str) -> Script:
        async def script(request: Request, wire: Wire) -> None:
            if b"boom" in request.body:
                wire.reset()
                assert engines[name]._server is not None
                engines[name]._server.close()
                return
            await says("fine")(request, wire)

        return script

    for name in ("b1", "b2", "b3", "b4"):
        engines[name] = vllm(mortal(name))
    gateway = await start(engines)
    reply = await gateway.chat("boom")
    assert reply.status == 502
    dead = [engine for engine in engines.values() if engine.asked]
    assert len(dead) == 2
    assert (await gateway.chat("harmless")).status == 200
    again = await gateway.chat("boom")
    assert (again.status, again.error["code"]) == (503, "held_back")
    assert [engine for engine in engines.values() if b"boom" in b"".join(r.body for r in engine.asked)] == dead


async def test_a_dead_engines_work_goes_to_the_living_at_once(start: Start) -> None:
    engines = {"b1": vllm(says("fine")), "b2": vllm(says("fine"))}
    gateway = await start(engines, b2=SECOND)
    await engines["b1"].__aexit__()
    replies = await asyncio.gather(*(gateway.chat(f"{n}") for n in range(10)))
    assert {reply.status for reply in replies} == {200}
    assert {reply.headers["x-kvgate-backend"] for reply in replies} == {"b2"}


async def test_f6_a_busy_engine_that_is_the_only_one_is_asked_again_after_the_time_it_named(start: Start) -> None:
    busy = json_answer({"error": {"message": "too many requests", "code": 429}}, 429, [("Retry-After", "1")])
    engine = vllm(busy, says("fine"))
    gateway = await start({"b1": engine}, rest="queue: {wait: 5s}")
    began = clock.monotonic()
    reply = await gateway.chat()
    assert reply.status == 200
    assert 0.9 < clock.monotonic() - began < 3


async def test_f6_a_longer_rest_that_an_engine_asked_for_is_kept(start: Start) -> None:
    busy = json_answer({"error": {"message": "too many", "code": 429}}, 429, [("Retry-After", "30")])
    engines = {"b1": vllm(busy), "b2": vllm(says("fine"))}
    gateway = await start(engines, b2=SECOND)
    for number in range(5):
        assert (await gateway.chat(f"{number}")).status == 200
    assert asked(*engines.values()) == [1, 5]
    assert gateway.health("b1") is Health.RESTING


async def test_f7_every_attempt_has_an_id_of_its_own_and_none_of_the_clients(start: Start) -> None:
    engine = vllm(says("a", "b", gap=0.1))
    gateway = await start({"b1": engine})
    body = chat(request_id="same", stream=True)
    clients = [await gateway.send(body, x_request_id="same") for _ in range(2)]
    for client in clients:
        assert (await client.reply()).complete
    ids = [request.values("x-request-id") for request in engine.asked]
    assert len({one for (one,) in ids}) == 2
    assert all(b"same" not in request.body for request in engine.asked)
    assert ["same"] not in ids


async def test_a_fallback_answers_under_its_own_name_when_no_backend_of_the_first_works(start: Start) -> None:
    engines = {"b1": vllm(model="big"), "b2": vllm(says("from the small one"), model="small")}
    gateway = await start(engines, rest="models: [{name: m, serves: big, fallback: [small]}]")
    await engines["b1"].__aexit__()
    await gateway.until(lambda: gateway.health("b1") is Health.DOWN)
    reply = await gateway.chat(model="m")
    assert reply.status == 200
    assert reply.json["model"] == "small"
    assert reply.headers["x-kvgate-fallback"].partition(";")[0] == "small"
    assert (await gateway.ask(chat(model="m"), x_allow_fallback="other, small")).json["model"] == "small"
    assert (await gateway.ask(chat(model="m"), x_allow_fallback="big")).status == 503
    assert (await gateway.ask(chat(model="m"), x_allow_fallback="smal")).status == 400
    refused = await gateway.ask(chat(model="m"), x_allow_fallback="none")
    assert refused.status == 503


async def test_garbage_in_place_of_a_status_line_is_tried_elsewhere(start: Start) -> None:
    engines = {"b1": vllm(raw(b"\x00\x01garbage\r\n\r\n", then="close")), "b2": vllm(says("fine"))}
    gateway = await start(engines, b2=SECOND)
    assert (await gateway.chat()).status == 200
    assert asked(*engines.values()) == [1, 1]


async def test_why_another_model_answers_is_told_to_the_client_and_the_journal(start: Start) -> None:
    first, second = vllm(says("large"), model="large"), vllm(says("small"), model="small")
    rest = "models: [{name: large, serves: large, fallback: [small]}, {name: small, serves: small}]"
    gateway = await start({"b1": first, "b2": second}, rest=rest)
    assert first._server is not None
    first._server.close()
    await gateway.until(lambda: gateway.app.roster.wrong.get("b1") == "dead")
    reply = await gateway.chat(model="large")
    assert reply.headers["x-kvgate-fallback"] == "small; b1=dead"
    record = await gateway.admin(f"/admin/decisions/{reply.headers['x-kvgate-decision']}")
    assert record["causes"] == {"b1": "dead"}
    usual = await gateway.chat(model="small")
    assert "x-kvgate-fallback" not in usual.headers

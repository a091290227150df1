"""Known failures of streams, errors and disconnects, on every API that clients speak, passed through and translated."""

from __future__ import annotations

import asyncio
import json

import pytest

from gateway.core.snapshot import Health
from tests.relay.fake_engine import DONE, FINISH, ROLE, raw, silent, token
from tests.shell.engine_double import page
from tests.shell.fixtures import Start
from tests.shell.surface_cases import CASES, Case
from tests.shell.surface_engines import WHOLE

each = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.client} on {case.spoken}")
translated = pytest.mark.parametrize(
    "case",
    [each for each in CASES if each.spoken == "chat" and each.client != "ollama_generate"],
    ids=lambda case: case.client,
)
THINKS = {"messages": {"thinking": {"type": "enabled", "budget_tokens": 20}}, "ollama_chat": {"think": True}}
BROKEN = 'kvgate_backend_failures_total{backend="b1",kind="broken"}'


def words(case: Case, *texts: str) -> list[bytes]:
    return [case.words.begin, *map(case.words.word, texts)]


@each
async def test_s1_s7_n1_a_stream_arrives_whole_under_the_clients_name_and_is_counted(start: Start, case: Case) -> None:
    parts = b"".join([*words(case, "你好", "🦊"), case.words.finish])
    cut = parts.index("你好".encode()) + 4 if "你好".encode() in parts else parts.index(b"u4f60") + 3
    engine = case.engine(case.stream(parts[:cut], parts[cut:]), model="org/m")
    gateway = await start({"b1": engine}, rest="models: [{name: code, serves: org/m}]")
    reply = await gateway.ask(case.body(model="code"), case.path)
    assert reply.status == 200, reply.body
    assert (case.text(reply.body), reply.complete) == ("你好🦊", True)
    assert case.succeeded(reply.body)
    assert case.errors(reply.body) == []
    assert case.models(reply.body) == {"code"}
    assert engine.body()["model"] == "org/m"
    assert reply.headers["x-kvgate-backend"] == "b1"
    if case.client == "chat":  # it asked for no usage
        assert all(event["choices"] for event in case.events(reply.body))
    if case.spoken in ("messages", "responses"):
        await gateway.idle()
        assert await gateway.value('kvgate_tokens_total{backend="b1",kind="prompt",model="code"}') == 11


@each
@pytest.mark.parametrize("broken", ["ended", "reset", "half an event"])
async def test_s2_s3_s5_a_cut_stream_ends_in_one_error_without_a_mark_of_success(
    start: Start, case: Case, broken: str
) -> None:
    tail = case.words.word("never")[:-20] if broken == "half an event" else b""
    how = {"end": False, "then": "reset"} if broken == "reset" else {"then": "close"}
    engine = case.engine(case.stream(*words(case, "a", "b", "c"), tail, **how))
    gateway = await start({"b1": engine})
    reply = await gateway.ask(case.body(), case.path)
    assert reply.status == 200
    assert case.text(reply.body) == "abc"  # reads every event as JSON
    assert len(case.errors(reply.body)) == 1
    assert not case.succeeded(reply.body)
    assert reply.complete is (case.client == "responses")  # see gateway.wire.dialect
    await gateway.idle()
    assert await gateway.value(BROKEN) == 1
    assert len(engine.asked) == 1


@pytest.mark.parametrize(
    "case", [each for each in CASES if each.spoken == "chat"], ids=lambda case: f"{case.client} on {case.spoken}"
)
async def test_s2_a_stream_of_nothing_but_its_end_is_a_failure(start: Start, case: Case) -> None:
    gateway = await start({"b1": case.engine(case.stream(DONE))})
    assert (await gateway.ask(case.body(), case.path)).status == 502


@each
async def test_n1_a_whole_answer_is_under_the_clients_name(start: Start, case: Case) -> None:
    engine = case.engine(page({**WHOLE[case.spoken], "model": "org/m"}), model="org/m")
    gateway = await start({"b1": engine}, rest="models: [{name: code, serves: org/m}]")
    reply = await gateway.ask(case.body(model="code", stream=False), case.path)
    assert (reply.status, reply.json["model"]) == (200, "code")
    assert "said" in reply.body.decode()
    assert b"org/m" not in reply.body
    assert engine.body()["model"] == "org/m"


@each
async def test_s2_e4_a_whole_answer_that_is_cut_is_no_answer(start: Start, case: Case) -> None:
    half = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"id":'
    gateway = await start({"b1": case.engine(raw(half, then="close"))})
    reply = await gateway.ask(case.body(stream=False), case.path)
    assert reply.status == 502
    assert case.code(reply) not in ("invalid_request_error", "200")


@each
async def test_s4_an_error_in_the_first_event_is_a_plain_error(start: Start, case: Case) -> None:
    engines = {name: case.engine(case.stream(case.words.refusal)) for name in ("b1", "b2")}
    gateway = await start(engines)
    reply = await gateway.ask(case.body(), case.path)
    assert reply.status == 400
    assert case.code(reply)
    assert "m" in reply.body.decode()
    if not case.spoken.startswith("ollama"):  # that one says an overflow, which may be tried on a larger window
        assert sum(len(engine.asked) for engine in engines.values()) == 1
    assert {gateway.health(name) for name in engines} == {Health.UP}


@each
@pytest.mark.parametrize("stream", [True, False])
async def test_e1_a_sidecars_plain_text_is_told_in_the_clients_dialect(start: Start, case: Case, stream: bool) -> None:
    gateway = await start({"b1": case.engine(page(b"upstream connect error or disconnect", 503, "text/plain"))})
    reply = await gateway.ask(case.body(stream=stream), case.path)
    assert reply.status in (502, 503)
    assert case.code(reply)
    assert b"disconnect" not in reply.body


@each
@pytest.mark.parametrize("stream", [True, False])
async def test_e4_no_status_line_is_the_engines_fault_in_every_dialect(start: Start, case: Case, stream: bool) -> None:
    gateway = await start({"b1": case.engine(raw(then="close"))})
    reply = await gateway.ask(case.body(stream=stream), case.path)
    assert reply.status == 502
    assert case.code(reply)
    assert b"invalid_request_error" not in reply.body


@each
async def test_e6_half_an_emoji_is_refused_and_the_connection_goes_on(start: Start, case: Case) -> None:
    engine = case.engine(case.stream(*words(case, "ok"), case.words.finish))
    gateway = await start({"b1": engine})
    client = await gateway.connect()
    asked = [str(case.body(text)).replace("'", '"').replace("True", "true") for text in ("CUT", "hi")]
    bad = await client.request("POST", case.path, asked[0].replace("CUT", r"\ud83d").encode())
    assert bad.status == 400
    assert case.code(bad)
    assert engine.asked == []
    assert (await client.request("POST", case.path, asked[1].encode())).status == 200


@each
async def test_c2_c3_an_overflow_has_one_code_and_blames_nobody(start: Start, case: Case) -> None:
    told = "This model's maximum context length is 2048 tokens. However, you requested 9000 tokens."
    error = {"message": told, "type": "invalid_request_error", "code": 400}
    ollama = {"error": "the input length exceeds the context length"}
    engine = case.engine(page(ollama if case.spoken.startswith("ollama") else {"type": "error", "error": error}, 400))
    gateway = await start({"b1": engine})
    for stream in (True, False) * 2:
        reply = await gateway.ask(case.body(stream=stream), case.path)
        assert (reply.status, case.code(reply)) == (400, "context_length_exceeded")
    assert len(engine.asked) == 4
    assert gateway.health("b1") is Health.UP


@each
async def test_x2_x3_x4_clients_that_leave_free_everything_at_any_stage(start: Start, case: Case) -> None:
    talks = case.stream(*words(case, *"abcde"), end=False, then="silent")
    engine = case.engine(silent(), silent(), talks)
    gateway = await start({"b1": engine}, b1={"running": "3"})
    clients = []
    for number, stream in enumerate((True, False, True)):
        clients.append(await gateway.send(case.body(stream=stream), case.path))
        await engine.asked_for(number + 1)
    await clients[2].head()
    seen = b""
    async with asyncio.timeout(3):
        while case.text(seen[: seen.rfind(b"\n") + 1]) != "abcde":
            seen += await clients[2].chunk()
    for client in clients:
        client.close()
    await engine.quiet(1)
    await gateway.idle(3)
    lines = await gateway.access()
    assert [(line["status"], line["outcome"]) for line in lines] == [(499, "client_closed")] * 3
    assert await gateway.value('kvgate_client_closed_total{model="tiny",stage="prefill"}') == 2


@each
async def test_s6_s9_a_long_event_arrives_whole_and_nobody_buffers_it(start: Start, case: Case) -> None:
    gateway = await start({"b1": case.engine(case.stream(*words(case, "x" * 700 * 1024), case.words.finish))})
    reply = await gateway.ask(case.body(), case.path, accept_encoding="gzip")
    assert len(case.text(reply.body)) == 700 * 1024
    assert case.succeeded(reply.body)
    assert (reply.headers["x-accel-buffering"], reply.headers["cache-control"]) == ("no", "no-cache")
    assert "content-encoding" not in reply.headers


@each
async def test_c1_an_output_budget_over_the_window_is_lowered(start: Start, case: Case) -> None:
    engine = case.engine(case.stream(*words(case, "ok"), case.words.finish))
    gateway = await start({"b1": engine}, b1={"models": "[{id: tiny, context: 8192}]", "running": "4"})
    reply = await gateway.ask(case.body("lorem ipsum " * 2000, budget=32_000), case.path)
    assert reply.status == 200
    sent = engine.body()
    named = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    (budget,) = [sent[name] for name in named if name in sent] or [sent["options"]["num_predict"]]
    assert 0 < budget < 8192 - 2000
    assert reply.headers["x-kvgate-max-tokens"] == str(budget)


def delta(reason: str | None = None, **fields: object) -> bytes:
    choice = {"index": 0, "delta": fields, "finish_reason": reason}
    return f"data: {json.dumps({'id': 'c', 'model': 'tiny', 'choices': [choice]})}\n\n".encode()


@translated
async def test_r1_reasoning_by_either_name_is_the_clients_own(start: Start, case: Case) -> None:
    parts = [ROLE, delta(reasoning="hm "), delta(reasoning_content="so"), delta(x_foo=1), token("x"), FINISH, DONE]
    body = {**case.body(), **THINKS.get(case.client, {})}
    gateway = await start({"b1": case.engine(case.stream(*parts))})
    reply = await gateway.ask(body, case.path)
    assert case.reasoning(reply.body) == "hm so"
    assert case.text(reply.body) == "x"


@translated
async def test_r2_parallel_calls_whose_pieces_alternate_are_put_together_right(start: Start, case: Case) -> None:
    def piece(index: int, arguments: str, **more: object) -> dict[str, object]:
        name = f"f{index}" if more else None
        return {"index": index, "function": {"name": name, "arguments": arguments}, **more}

    parts = [
        ROLE,
        delta(tool_calls=[piece(0, '{"a', id="c0", type="function")]),
        delta(tool_calls=[piece(1, '{"b', id="c1", type="function")]),
        delta(tool_calls=[piece(0, '":"1')]),
        delta(tool_calls=[piece(1, '":"2')]),
        delta(tool_calls=[{"index": 0}]),
        delta(tool_calls=[piece(0, '"}')]),
        delta("tool_calls", tool_calls=[piece(1, '"}')]),
        DONE,
    ]
    gateway = await start({"b1": case.engine(case.stream(*parts))})
    reply = await gateway.ask(case.body(), case.path)
    assert case.succeeded(reply.body)
    assert case.calls(reply.body) == {"f0": {"a": "1"}, "f1": {"b": "2"}}

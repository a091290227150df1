from __future__ import annotations

import asyncio
import json

from gateway.core.snapshot import Health
from tests.relay.fake_engine import DONE, FINISH, ROLE, STREAM_HEAD, Request, Wire, chunk, raw, sse, token
from tests.shell.engine_double import says, vllm
from tests.shell.fixtures import Start
from tests.shell.running import events, text_of

CUT = 'kvgate_backend_failures_total{backend="b1",kind="broken"}'


async def test_s1_characters_cut_between_two_reads_arrive_whole(start: Start) -> None:
    body = b"".join((ROLE, token("你好"), FINISH, DONE))
    cut = body.index("你好".encode()) + 4
    gateway = await start({"b1": vllm(sse(body, cuts=(cut,)))})
    reply = await gateway.chat(stream=True)
    assert reply.body == body
    assert text_of(reply.body) == "你好"


async def test_s2_a_stream_that_ends_without_a_terminal_event_ends_in_an_error(start: Start) -> None:
    gateway = await start({"b1": vllm(sse(ROLE, *map(token, "abcde")))})
    reply = await gateway.chat(stream=True)
    *shown, last = events(reply.body)
    assert text_of(reply.body) == "abcde"
    assert last["error"]["code"] == "upstream_stream_broken"
    assert not reply.complete
    assert "[DONE]" not in shown
    assert await gateway.value(CUT) == 1


async def test_s2_a_whole_answer_that_is_cut_is_no_answer(start: Start) -> None:
    half = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"choices":'
    gateway = await start({"b1": vllm(raw(half, then="close"))})
    reply = await gateway.chat()
    assert reply.status == 502
    assert reply.error["type"] == "upstream_error"


async def test_s3_a_reset_in_the_middle_is_told_in_band_and_the_body_is_left_unfinished(start: Start) -> None:
    gateway = await start({"b1": vllm(sse(ROLE, *map(token, "abc"), end=False, then="reset"))})
    reply = await gateway.chat(stream=True)
    assert reply.status == 200
    assert text_of(reply.body) == "abc"
    assert set(events(reply.body)[-1]["error"]) >= {"message", "type", "code", "param"}
    assert b"[DONE]" not in reply.body
    assert not reply.complete


async def test_s4_an_error_as_the_first_event_becomes_a_plain_error_and_nobody_else_is_asked(start: Start) -> None:
    said = b'data: {"error":{"message":"m","type":"BadRequestError","code":400}}\n\n'
    engines = {"b1": vllm(sse(said, DONE)), "b2": vllm(sse(said, DONE))}
    gateway = await start(engines)
    reply = await gateway.chat(stream=True)
    assert reply.status == 400
    assert reply.error["message"] == "m"
    assert sum(len(engine.asked) for engine in engines.values()) == 1


async def test_s4_a_server_error_as_the_first_event_is_tried_elsewhere(start: Start) -> None:
    said = b'data: {"error":{"message":"engine died","type":"InternalServerError","code":500}}\n\n'
    engines = {"b1": vllm(sse(said, DONE)), "b2": vllm(says("fine"))}
    gateway = await start(engines, b2={"device": "dgx-spark"})
    reply = await gateway.chat(stream=True)
    assert reply.status == 200
    assert text_of(reply.body) == "fine"
    assert len(engines["b1"].asked) == 1


async def test_s5_an_error_event_is_never_glued_to_an_unfinished_one(start: Start) -> None:
    gateway = await start({"b1": vllm(sse(ROLE, token("a"), b'data: {"choices":[{"delta":{"conte', then="close"))})
    reply = await gateway.chat(stream=True)
    read = events(reply.body)  # reads every event as JSON
    assert "error" in read[-1]
    assert text_of(reply.body) == "a"


async def test_s6_an_event_line_of_700_kib_arrives_whole(start: Start) -> None:
    long = token("x" * 700 * 1024)
    gateway = await start({"b1": vllm(sse(ROLE, long, FINISH, DONE))})
    reply = await gateway.chat(stream=True)
    assert len(text_of(reply.body)) == 700 * 1024
    assert reply.complete


async def test_s7_usage_is_counted_but_shown_only_to_a_client_that_asked(start: Start) -> None:
    engine = vllm(says("a", "b", prompt=11))
    gateway = await start({"b1": engine})
    reply = await gateway.chat(stream=True)
    assert engine.body()["stream_options"] == {"include_usage": True}
    assert all(event["choices"] for event in events(reply.body) if event != "[DONE]")
    await gateway.idle()
    assert await gateway.value('kvgate_tokens_total{backend="b1",kind="prompt",model="tiny"}') == 11
    reply = await gateway.chat(stream=True, stream_options={"include_usage": True})
    assert events(reply.body)[-2]["usage"]["prompt_tokens"] == 11


async def test_s7_a_clients_explicit_no_to_usage_reaches_the_engine(start: Start) -> None:
    engine = vllm(says("a"))
    gateway = await start({"b1": engine})
    await gateway.chat(stream=True, stream_options={"include_usage": False})
    assert engine.body()["stream_options"] == {"include_usage": False}


async def test_s7_chunks_of_any_shape_pass(start: Start) -> None:
    odd = [
        b'data: {"id":"c"}\n\n',
        b'data: {"choices":null}\n\n',
        b'data: {"choices":[{"index":0}]}\n\n',
        b"data: 7\n\n",
        b": a comment\n\n",
        b'event: ping\ndata: {"type":"ping"}\n\n',
    ]
    gateway = await start({"b1": vllm(sse(ROLE, token("a"), *odd, FINISH, DONE))})
    reply = await gateway.chat(stream=True)
    assert reply.body == b"".join((ROLE, token("a"), *odd, FINISH, DONE))


async def test_s9_streams_tell_proxies_not_to_buffer_or_compress_and_flush_each_token(start: Start) -> None:
    second = asyncio.Event()
    gateway = await start({"b1": vllm(says("one", "two", until=second))})
    client = await gateway.send(
        {"model": "tiny", "stream": True, "messages": [{"role": "user", "content": "x"}]}, accept_encoding="gzip"
    )
    status, headers, _ = await client.head()
    assert (status, headers["x-accel-buffering"], headers["cache-control"]) == (200, "no", "no-cache")
    assert "content-encoding" not in headers
    seen = b""
    while b"one" not in seen:
        seen += await client.chunk()
    assert b"two" not in seen
    second.set()
    while data := await client.chunk():
        seen += data
    assert text_of(seen) == "onetwo"


async def test_s10_a_stream_may_last_longer_than_every_limit_as_long_as_it_moves(start: Start) -> None:
    gateway = await start(
        {"b1": vllm(says(*"abcdefghij", gap=0.1))},
        b1={"timeouts": "{connect: 300ms, first_token: 300ms, token_gap: 300ms}"},
    )
    reply = await gateway.chat(stream=True)
    assert text_of(reply.body) == "abcdefghij"
    assert reply.complete
    assert gateway.health("b1") is Health.UP


async def test_silence_after_a_token_is_limited_and_told_in_band(start: Start) -> None:
    async def stalls(_request: Request, wire: Wire) -> None:
        await wire.send(STREAM_HEAD, chunk(ROLE), chunk(token("a")))
        await wire.gone()

    gateway = await start({"b1": vllm(stalls)}, b1={"timeouts": "{token_gap: 300ms}"})
    reply = await gateway.chat(stream=True)
    assert "token_gap" in json.dumps(events(reply.body)[-1])
    assert not reply.complete
    assert await gateway.value('kvgate_backend_failures_total{backend="b1",kind="token_gap"}') == 1

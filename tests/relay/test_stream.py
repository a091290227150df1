from __future__ import annotations

import asyncio
import gzip
import json
import re

import pytest

from gateway.errors import BadStatus, ClientClosed, StreamBroken, TimedOut
from gateway.relay import Hooks, Limits
from tests.relay.conftest import INF, MakeRig
from tests.relay.fake_engine import (
    DONE,
    FINISH,
    ROLE,
    STREAM_HEAD,
    Request,
    Wire,
    chunk,
    json_answer,
    raw,
    silent,
    sse,
    token,
)

EVENTS = [ROLE, token("Hel"), token("lo"), FINISH, DONE]


def events_of(body: bytes) -> list[bytes]:
    *events, rest = body.split(b"\n\n")
    assert rest == b""
    return events


async def test_the_client_gets_the_engine_s_bytes(make_rig: MakeRig) -> None:
    rig = await make_rig(sse(*EVENTS))
    await rig.stream()
    assert rig.down.body == b"".join(EVENTS)
    assert rig.down.ended
    assert rig.down.status == 200
    assert dict(rig.down.headers) == {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
    }
    assert rig.pool.idle_connections == 1


async def test_a_character_cut_between_two_reads_arrives_whole(make_rig: MakeRig) -> None:
    event = token("你好")
    at = event.index("好".encode()) + 1
    rig = await make_rig(raw(STREAM_HEAD, chunk(event[:at]), chunk(event[at:] + FINISH), b"0\r\n\r\n"))
    await rig.stream()
    assert rig.down.body == event + FINISH


async def test_one_long_event_comes_through(make_rig: MakeRig) -> None:
    event = token("x" * (700 << 10))
    rig = await make_rig(sse(event, FINISH, DONE))
    await rig.stream()
    assert rig.down.body == event + FINISH + DONE


async def test_one_read_is_one_write(make_rig: MakeRig) -> None:
    body = b"".join(EVENTS)
    rig = await make_rig(raw(STREAM_HEAD + b"".join(chunk(event) for event in EVENTS) + b"0\r\n\r\n"))
    await rig.stream()
    assert rig.down.writes == [body]
    assert rig.meter.chunks == 1
    assert rig.meter.bytes == len(body)
    assert rig.meter.tokens == 2


async def test_end_of_body_without_terminal_event_is_a_failure(make_rig: MakeRig) -> None:
    rig = await make_rig(sse(*[token(str(n)) for n in range(5)]))
    with pytest.raises(StreamBroken) as caught:
        await rig.stream()
    assert caught.value.started
    events = events_of(rig.down.body)
    assert len(events) == 6
    error = json.loads(events[-1].removeprefix(b"data: "))["error"]
    assert error["code"] == "upstream_stream_broken"
    assert rig.down.aborted
    assert not rig.down.ended
    assert b"[DONE]" not in rig.down.body


@pytest.mark.parametrize("then", ["reset", "close"])
async def test_cut_in_the_middle_ends_with_one_error_event(make_rig: MakeRig, then: str) -> None:
    tail = b'data: {"choices":[{"delta":{"conte'
    rig = await make_rig(sse(token("a"), token("b"), token("c"), tail, then=then, end=False))
    with pytest.raises(StreamBroken) as caught:
        await rig.stream()
    assert caught.value.started
    events = events_of(rig.down.body)
    payloads = [json.loads(event.removeprefix(b"data: ")) for event in events]
    assert ["error" in payload for payload in payloads] == [False, False, False, True]
    assert rig.down.aborted
    assert rig.pool.open_connections == 0


async def test_a_cut_after_the_terminal_event_took_nothing(make_rig: MakeRig) -> None:
    rig = await make_rig(sse(token("a"), FINISH, then="reset", end=False))
    await rig.stream()
    assert rig.down.body == token("a") + FINISH
    assert rig.down.ended


async def test_an_engine_that_does_not_end_its_body_after_done(make_rig: MakeRig) -> None:
    rig = await make_rig(sse(token("a"), FINISH, DONE, then="silent", end=False))
    running = asyncio.create_task(rig.stream())
    await rig.until(lambda: rig.view.done)
    assert not rig.down.ended  # the terminal event leaves with the end of the body
    rig.pass_time(0.3)
    await running
    assert rig.down.ended
    assert rig.down.body == token("a") + FINISH + DONE
    await rig.engine.left()


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (b'data: {"error":{"message":"m","type":"BadRequestError","code":400}}\n\n', 400),
        (b'data: {"error":{"message":"m","type":"server_error","code":500}}\n\n', 500),
        (b'data: {"error":{"message":"m","type":"invalid_request_error","code":null}}\n\n', 400),
        (b'data: {"error":{"message":"m","code":"429"}}\n\n', 429),
        (b'error: {"code":400,"message":"m","type":"invalid_request_error"}\n\n', 400),
        (b'{"error":{"message":"m","code":503}}', 503),
    ],
)
@pytest.mark.parametrize("before", [b"", b":\n\n", ROLE])
async def test_an_error_as_the_first_event_is_the_answer(
    make_rig: MakeRig, event: bytes, status: int, before: bytes
) -> None:
    last = [] if event.startswith(b"{") else [DONE]
    rig = await make_rig(sse(*([before] if before else []), event, *last))
    with pytest.raises(BadStatus) as caught:
        await rig.stream()
    assert caught.value.status == status
    assert json.loads(caught.value.payload)["error"]["message"] == "m"
    assert not caught.value.started
    assert not rig.down.started
    assert not rig.down.aborted


async def test_an_error_event_in_the_middle_is_ours_and_the_last(make_rig: MakeRig) -> None:
    told = b'data: {"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}\n\n'
    rig = await make_rig(sse(token("a"), told, DONE, then="silent", end=False))
    with pytest.raises(StreamBroken) as caught:
        await rig.stream()
    assert isinstance(caught.value.__cause__, BadStatus)
    assert json.loads(caught.value.__cause__.payload)["error"]["code"] == 500
    assert "Context size" not in caught.value.message
    first, last = events_of(rig.down.body)
    assert first + b"\n\n" == token("a")
    assert json.loads(last.removeprefix(b"data: "))["error"]["message"] == "Context size has been exceeded."
    await rig.engine.left()


@pytest.mark.parametrize("script", [raw(then="close"), raw(then="reset"), sse(), sse(ROLE, then="close", end=False)])
async def test_a_cut_before_the_first_token_shows_nothing(make_rig: MakeRig, script: object) -> None:
    rig = await make_rig(script)
    with pytest.raises(StreamBroken) as caught:
        await rig.stream()
    assert not caught.value.started
    assert not rig.down.started
    assert not rig.down.aborted


async def test_an_error_status_carries_its_body_and_retry_after(make_rig: MakeRig) -> None:
    rig = await make_rig(json_answer({"error": {"message": "busy"}}, 503, [("Retry-After", "7")]))
    with pytest.raises(BadStatus) as caught:
        await rig.stream()
    assert caught.value.status == 503
    assert caught.value.retry_after == 7.0
    assert json.loads(caught.value.payload) == {"error": {"message": "busy"}}
    assert rig.pool.idle_connections == 1


@pytest.mark.parametrize(
    ("payload", "status"), [({"error": {"message": "m", "code": 400}}, 400), ({"choices": []}, 502)]
)
async def test_json_in_place_of_a_stream_is_an_error(make_rig: MakeRig, payload: object, status: int) -> None:
    rig = await make_rig(json_answer(payload))
    with pytest.raises(BadStatus) as caught:
        await rig.stream()
    assert caught.value.status == status
    assert not rig.down.started


async def test_a_redirect_is_not_followed(make_rig: MakeRig) -> None:
    rig = await make_rig(raw(b"HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"))
    with pytest.raises(BadStatus) as caught:
        await rig.stream()
    assert caught.value.status == 502


async def test_first_token_limit_counts_neither_pings_nor_the_role_chunk(make_rig: MakeRig) -> None:
    rig = await make_rig(sse(b":\n\n", ROLE, then="silent", end=False))
    running = asyncio.create_task(rig.stream())
    await rig.engine.until(lambda: bool(rig.engine.requests))
    await rig.until(lambda: rig.meter.chunks == 2)
    rig.pass_time(29.0)
    await asyncio.sleep(0)
    assert not running.done()
    rig.pass_time(1.2)
    with pytest.raises(TimedOut, match=re.escape("no first token within 30 s (limit: first_token)")):
        await running
    await rig.engine.left()


async def test_pings_do_not_keep_a_dead_stream_alive(make_rig: MakeRig) -> None:
    ping = asyncio.Event()

    async def script(_request: Request, wire: Wire) -> None:
        await wire.send(STREAM_HEAD, chunk(token("a")))
        await ping.wait()
        await wire.send(chunk(b": ping\n\n"))
        await wire.gone()

    rig = await make_rig(script)
    running = asyncio.create_task(rig.stream())
    await rig.down.until(lambda: rig.down.body == token("a"))
    rig.pass_time(9.0)
    ping.set()
    await rig.down.until(lambda: rig.down.body.endswith(b": ping\n\n"))
    rig.pass_time(1.2)
    with pytest.raises(StreamBroken) as caught:
        await running
    assert caught.value.code == "upstream_timeout"
    assert isinstance(caught.value.__cause__, TimedOut)
    assert "for 10 s (limit: token_gap)" in caught.value.message
    assert b"upstream_timeout" in rig.down.body
    assert rig.down.aborted


async def test_a_slow_healthy_stream_has_no_total_limit(make_rig: MakeRig) -> None:
    steps = asyncio.Queue[bytes]()

    async def script(_request: Request, wire: Wire) -> None:
        await wire.send(STREAM_HEAD)
        while piece := await steps.get():
            await wire.send(chunk(piece))
        await wire.send(b"0\r\n\r\n")

    rig = await make_rig(script)
    running = asyncio.create_task(rig.stream())
    for number in range(100):
        event = token(str(number))
        steps.put_nowait(event)
        await rig.down.until(lambda event=event: rig.down.body.endswith(event))
        rig.pass_time(9.0)
    steps.put_nowait(FINISH)
    steps.put_nowait(b"")
    await running
    assert rig.meter.max_gap == 9.0
    assert rig.meter.tpot == 9.0
    assert rig.meter.ttft == 0.0


async def test_keepalive_comments_until_the_first_token(make_rig: MakeRig) -> None:
    go = asyncio.Event()

    async def script(_request: Request, wire: Wire) -> None:
        await wire.send(STREAM_HEAD)
        await go.wait()
        await wire.send(*(chunk(event) for event in EVENTS), b"0\r\n\r\n")

    rig = await make_rig(script)
    rig.limits = Limits(2.0, 60.0, 10.0, 5.0, 5.0, 1 << 20)
    running = asyncio.create_task(rig.stream())
    await rig.engine.until(lambda: bool(rig.engine.requests))
    await rig.until(lambda: rig.meter.head_at is not None)
    for _ in range(8):
        rig.pass_time(5.05)
    assert rig.down.body == b": keepalive\n\n" * 8
    go.set()
    await running
    assert rig.down.body.endswith(b"".join(EVENTS))
    assert rig.down.ended


async def test_s8_keepalives_come_before_the_engine_s_head_too(make_rig: MakeRig) -> None:
    rig = await make_rig(silent())
    rig.limits = Limits(2.0, 60.0, 10.0, 5.0, 5.0, 1 << 20)
    running = asyncio.create_task(rig.stream())
    await rig.engine.until(lambda: bool(rig.engine.requests))
    rig.pass_time(4.9)
    assert not rig.down.started
    rig.pass_time(0.2)
    assert rig.down.body == b": keepalive\n\n"
    assert not rig.down.shown
    rig.pass_time(56.0)
    with pytest.raises(TimedOut) as caught:
        await running
    assert not caught.value.started


async def test_an_error_after_a_keepalive_may_still_be_tried_elsewhere(make_rig: MakeRig) -> None:
    go = asyncio.Event()

    async def script(_request: Request, wire: Wire) -> None:
        await wire.send(STREAM_HEAD)
        await go.wait()
        await wire.send(chunk(b'data: {"error":{"message":"m","code":400}}\n\n'), b"0\r\n\r\n")

    rig = await make_rig(script)
    rig.limits = Limits(2.0, 60.0, 10.0, 5.0, 5.0, 1 << 20)
    running = asyncio.create_task(rig.stream())
    await rig.until(lambda: rig.meter.head_at is not None)
    rig.pass_time(5.1)
    go.set()
    with pytest.raises(BadStatus) as caught:
        await running
    assert not caught.value.started
    assert rig.down.started
    assert not rig.down.shown
    assert not rig.down.aborted
    assert set(events_of(rig.down.body)) == {b": keepalive"}


async def test_hooks_are_called_once_and_now_and_then(make_rig: MakeRig) -> None:
    rig = await make_rig(sse(ROLE, *[token(str(n)) for n in range(200)], FINISH, DONE))
    firsts: list[float] = []
    progress: list[int] = []
    rig.hooks = Hooks(lambda: firsts.append(rig.clock.now), progress.append)
    await rig.stream()
    assert firsts == [1000.0]
    assert 1 <= len(progress) <= 3
    assert progress == sorted(progress)
    assert progress[0] >= 64


async def test_a_failing_hook_breaks_only_its_own_stream(make_rig: MakeRig) -> None:
    def explode() -> None:
        raise RuntimeError("hook")

    rig = await make_rig(sse(token("a"), FINISH, DONE))
    rig.hooks = Hooks(first_token=explode)
    with pytest.raises(StreamBroken) as caught:
        await rig.stream()
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert rig.pool.open_connections == 0


async def test_an_empty_answer_ends_well(make_rig: MakeRig) -> None:
    rig = await make_rig(sse(ROLE, FINISH, DONE))
    await rig.stream()
    assert rig.down.body == ROLE + FINISH + DONE
    assert rig.meter.ttft is None


async def test_a_client_that_closed_ends_it(make_rig: MakeRig) -> None:
    go = asyncio.Event()

    async def script(_request: Request, wire: Wire) -> None:
        await wire.send(STREAM_HEAD, chunk(token("a")))
        await go.wait()
        await wire.send(chunk(token("b")))
        await wire.gone()

    rig = await make_rig(script)
    running = asyncio.create_task(rig.stream())
    await rig.down.until(lambda: rig.down.started)
    rig.down.closed = True
    go.set()
    with pytest.raises(ClientClosed):
        await running
    assert rig.down.body == token("a")
    await rig.engine.left()


async def test_p1_a_compressed_stream_is_unpacked_as_it_comes(make_rig: MakeRig) -> None:
    head = STREAM_HEAD.replace(b"Server: fake", b"Content-Encoding: gzip")
    plain = b"".join((ROLE, *[token(str(n)) for n in range(50)], FINISH, DONE))
    packed = gzip.compress(plain)
    pieces = [chunk(packed[at : at + 7]) for at in range(0, len(packed), 7)]
    rig = await make_rig(raw(head, *pieces, b"0\r\n\r\n"))
    await rig.stream()
    assert rig.engine.requests[0].values("accept-encoding") == ["identity"]
    assert rig.down.body == plain
    assert "content-encoding" not in dict(rig.down.headers)


@pytest.mark.parametrize(("coding", "data"), [(b"gzip", b"no gzip at all"), (b"br", b"\x0b\x02")])
async def test_a_stream_that_can_t_be_unpacked_is_an_engine_s_fault(
    make_rig: MakeRig, coding: bytes, data: bytes
) -> None:
    head = STREAM_HEAD.replace(b"Server: fake", b"Content-Encoding: " + coding)
    rig = await make_rig(raw(head, chunk(data), then="silent"))
    with pytest.raises(StreamBroken, match=r"damaged|coding"):
        await rig.stream()
    assert not rig.down.started


def test_infinite_limits_are_allowed() -> None:
    assert Limits(2.0, INF, INF, INF, INF, 1).token_gap_s == INF

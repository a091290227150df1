from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from dataclasses import replace

import pytest

from gateway.errors import AnswerTooLarge, BadStatus, StreamBroken, TimedOut
from gateway.relay import Limits
from gateway.wire.assemble import Assembler
from tests.relay.conftest import INF, MakeRig
from tests.relay.fake_engine import DONE, FINISH, ROLE, chunk, json_answer, raw, silent, sse, token


async def test_json_is_collected(make_rig: MakeRig) -> None:
    payload = {"choices": [{"message": {"content": "héllo"}}]}
    rig = await make_rig(json_answer(payload, headers=[("X-Request-Id", "1"), ("Server", "x")]))
    whole = await rig.whole()
    assert whole.status == 200
    assert json.loads(whole.body) == payload
    assert whole.headers == [("content-type", "application/json"), ("x-request-id", "1")]
    assert rig.pool.idle_connections == 1
    assert rig.meter.ttft is None
    assert rig.meter.bytes == len(whole.body)


async def test_a_stream_is_assembled(make_rig: MakeRig) -> None:
    rig = await make_rig(sse(ROLE, token("Hel"), token("lo"), FINISH, DONE))
    whole = await rig.whole(Assembler("chat"))
    assert json.loads(whole.body)["choices"][0]["message"]["content"] == "Hello"
    assert ("content-type", "application/json") in whole.headers
    assert rig.meter.tokens == 2
    assert rig.meter.ttft == 0.0


async def test_json_where_a_stream_was_asked_for_is_taken(make_rig: MakeRig) -> None:
    rig = await make_rig(json_answer({"choices": []}))
    assert json.loads((await rig.whole(Assembler("chat"))).body) == {"choices": []}


async def test_a_stream_that_nobody_asked_for_is_assembled(make_rig: MakeRig) -> None:
    rig = await make_rig(
        [sse(ROLE, token("Hel"), token("lo"), FINISH, DONE), sse(ROLE, token("a")), json_answer({"a": 1})]
    )
    assembled = await rig.whole(Assembler("chat"), rig.view, stream=False)
    assert json.loads(assembled.body)["choices"][0]["message"]["content"] == "Hello"
    rig.again()
    with pytest.raises(StreamBroken, match="terminal event"):
        await rig.whole(Assembler("chat"), rig.view, stream=False)
    assert (await rig.whole(Assembler("chat"), stream=False)).body == b'{"a": 1}'


@pytest.mark.parametrize("status", [201, 204, 299])
async def test_only_200_is_an_answer(make_rig: MakeRig, status: int) -> None:
    rig = await make_rig(
        raw(b"HTTP/1.1 %d Odd\r\nContent-Length: 2\r\n\r\n{}" % status if status != 204 else b"HTTP/1.1 204 No\r\n\r\n")
    )
    for asked in (rig.whole(), rig.stream()):
        with pytest.raises(BadStatus) as caught:
            await asked
        assert caught.value.status == 502
    assert not rig.down.started


async def test_a_whole_answer_has_a_limit_of_its_own(make_rig: MakeRig) -> None:
    slow = [b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", b" "]
    rig = await make_rig([silent(), raw(*slow, then="silent")])
    rig.limits = replace(rig.limits, whole_by="first_token, and token_gap for each token")
    running = asyncio.create_task(rig.whole())
    await rig.engine.until(lambda: len(rig.engine.requests) == 1)
    rig.pass_time(30.1)
    with pytest.raises(TimedOut, match=r"no whole answer within 30 s \(limit: first_token, and token_gap"):
        await running
    # One that is sent byte by byte is held to it too.
    rig.limits = replace(rig.limits, token_gap_s=100.0)
    running = asyncio.create_task(rig.whole())
    await rig.until(lambda: rig.meter.bytes == 1)
    rig.pass_time(30.1)
    with pytest.raises(TimedOut, match="no whole answer within 30 s"):
        await running


@pytest.mark.parametrize("then", ["keep", "reset", "close"])
async def test_never_a_partial_answer(make_rig: MakeRig, then: str) -> None:
    rig = await make_rig(sse(ROLE, token("Hel"), then=then, end=then == "keep"))
    with pytest.raises(StreamBroken) as caught:
        await rig.whole(Assembler("chat"))
    assert not caught.value.started


async def test_a_short_body_is_broken(make_rig: MakeRig) -> None:
    rig = await make_rig(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}", then="close"))
    with pytest.raises(StreamBroken, match="in the middle"):
        await rig.whole()


@pytest.mark.parametrize("where", [0, 2])
async def test_an_error_event_is_a_bad_status(make_rig: MakeRig, where: int) -> None:
    events = [ROLE, token("a")][:where]
    error = b'data: {"error":{"message":"too long","type":"BadRequestError","code":400}}\n\n'
    rig = await make_rig(sse(*events, error, DONE))
    with pytest.raises(BadStatus) as caught:
        await rig.whole(Assembler("chat"))
    assert caught.value.status == 400
    assert json.loads(caught.value.payload)["error"]["message"] == "too long"


async def test_an_error_status_s_body_is_bounded(make_rig: MakeRig) -> None:
    body = b"x" * (3 << 20)
    rig = await make_rig(raw(b"HTTP/1.1 500 Oh\r\nContent-Length: %d\r\n\r\n" % len(body), body))
    with pytest.raises(BadStatus) as caught:
        await rig.whole()
    assert caught.value.status == 500
    assert len(caught.value.payload) == 1 << 20


async def test_an_error_status_counts_even_when_its_body_is_cut(make_rig: MakeRig) -> None:
    rig = await make_rig(raw(b"HTTP/1.1 503 No\r\nContent-Length: 100\r\n\r\nupstream", then="close"))
    with pytest.raises(BadStatus) as caught:
        await rig.whole()
    assert caught.value.status == 503
    assert caught.value.payload == b"upstream"


async def test_answers_are_bounded(make_rig: MakeRig) -> None:
    rig = await make_rig([json_answer({"a": "x" * 2000}), sse(token("x" * 2000), FINISH)])
    rig.limits = Limits(2.0, 30.0, 10.0, 5.0, INF, 1000)
    with pytest.raises(AnswerTooLarge, match="longer than the 1000 bytes"):
        await rig.whole()
    with pytest.raises(AnswerTooLarge, match="longer than the 1000 bytes"):
        await rig.whole(Assembler("chat"))


@pytest.mark.parametrize(("coding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
async def test_a_compressed_answer_is_unpacked(make_rig: MakeRig, coding: str, pack: object) -> None:
    assert callable(pack)
    packed = pack(json.dumps({"text": "x" * 5000}).encode())
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    bomb = pack(b"x" * (50 << 20))
    rig = await make_rig(
        [
            raw(head, packed),
            raw(head.replace(b"%d" % len(packed), b"%d" % (len(packed) - 9)), packed[:-9]),
            raw(head.replace(b"%d" % len(packed), b"%d" % len(bomb)), bomb),
        ]
    )
    whole = await rig.whole()
    assert json.loads(whole.body) == {"text": "x" * 5000}
    assert whole.headers == []
    with pytest.raises(StreamBroken, match="damaged"):
        await rig.whole()
    with pytest.raises(StreamBroken, match=r"longer than|more than"):
        await rig.whole()


async def test_the_first_byte_and_the_gap_are_timed(make_rig: MakeRig) -> None:
    rig = await make_rig([silent(), raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", then="silent")])
    running = asyncio.create_task(rig.whole())
    await rig.engine.until(lambda: len(rig.engine.requests) == 1)
    rig.pass_time(30.1)
    with pytest.raises(TimedOut, match="first_token"):
        await running
    running = asyncio.create_task(rig.whole())
    await rig.until(lambda: rig.meter.bytes == 3)
    rig.pass_time(10.1)
    with pytest.raises(TimedOut, match="token_gap"):
        await running
    await rig.engine.left()


async def test_raw_bytes_pass_in_pieces(make_rig: MakeRig) -> None:
    body = bytes(range(256)) * (30 << 12)  # 30 MiB
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    rig = await make_rig(raw(head, body))
    await rig.bytes()
    assert rig.down.length == len(body)
    assert rig.down.headers == [("content-type", "application/json")]
    assert len(rig.down.writes) > 20
    assert rig.down.body == body
    assert rig.down.ended
    assert rig.pool.idle_connections == 1


async def test_raw_bytes_keep_their_coding(make_rig: MakeRig) -> None:
    packed = gzip.compress(b"{}")
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    rig = await make_rig(raw(head + chunk(packed) + b"0\r\n\r\n"))
    await rig.bytes()
    assert ("content-encoding", "gzip") in rig.down.headers
    assert rig.down.length is None
    assert rig.down.body == packed


async def test_an_empty_raw_answer(make_rig: MakeRig) -> None:
    rig = await make_rig(raw(b"HTTP/1.1 204 No Content\r\n\r\n"))
    await rig.bytes()
    assert rig.down.status == 204
    assert rig.down.ended


async def test_a_cut_raw_answer(make_rig: MakeRig) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
    rig = await make_rig([raw(head, then="close"), raw(head, b"abc", then="reset")])
    with pytest.raises(StreamBroken) as caught:
        await rig.bytes()
    assert not rig.down.started
    assert not caught.value.started
    with pytest.raises(StreamBroken) as caught:
        await rig.bytes()
    assert caught.value.started
    assert rig.down.aborted
    assert rig.down.body == b"abc"


async def test_a_refused_raw_call_shows_nothing(make_rig: MakeRig) -> None:
    rig = await make_rig(json_answer({"error": {"message": "m"}}, 400))
    with pytest.raises(BadStatus):
        await rig.bytes()
    assert not rig.down.started

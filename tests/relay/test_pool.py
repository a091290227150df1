from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from gateway.errors import BadStatus, ConnectFailed, StreamBroken, TimedOut
from gateway.relay import Pool, TimerWheel
from tests.relay.conftest import MakeRig
from tests.relay.fake_engine import DONE, FINISH, Request, Script, Wire, chunk, json_answer, raw, silent, sse, token

OK = sse(token("a"), FINISH, DONE)


def closed_when_reused(how: str) -> Script:
    """Every second request on a connection finds it just closed."""

    async def script(request: Request, wire: Wire) -> None:
        await OK(request, wire)
        await wire.reader.readexactly(1)  # the next request has begun to arrive
        wire.reset() if how == "reset" else wire.close()

    return script


async def test_connections_are_kept_and_used_again(make_rig: MakeRig) -> None:
    rig = await make_rig(OK)
    for _ in range(5):
        rig.again()
        await rig.stream()
    assert [request.connection for request in rig.engine.requests] == [0] * 5


async def test_at_most_ninety_requests_a_connection(make_rig: MakeRig) -> None:
    rig = await make_rig(OK)
    for _ in range(91):
        rig.again()
        await rig.stream()
    assert [request.connection for request in rig.engine.requests] == [0] * 90 + [1]


async def test_idle_connections_are_closed_before_the_engine_does(make_rig: MakeRig) -> None:
    rig = await make_rig(OK)
    await rig.stream()
    assert rig.pool.idle_connections == 1
    rig.pass_time(4.1)
    assert rig.pool.open_connections == 0
    await rig.engine.left()


async def test_connection_close_is_respected(make_rig: MakeRig) -> None:
    rig = await make_rig(json_answer({}, headers=[("Connection", "close")]))
    await rig.whole()
    assert rig.pool.open_connections == 0


@pytest.mark.parametrize("how", ["reset", "close"])
async def test_the_reuse_race_is_not_the_client_s_trouble(make_rig: MakeRig, how: str) -> None:
    rig = await make_rig(closed_when_reused(how))
    for _ in range(20):
        rig.again()
        await rig.stream()
        assert rig.down.ended
    assert len(rig.engine.requests) == 20  # none was carried out twice


async def test_an_engine_that_closes_idle_connections(make_rig: MakeRig) -> None:
    rig = await make_rig(OK, engine={"idle_close_s": 0.01})
    for _ in range(30):
        rig.again()
        await rig.stream()
        await asyncio.sleep(0.01)
    assert len(rig.engine.requests) == 30


async def test_a_fresh_connection_that_dies_is_not_tried_again(make_rig: MakeRig) -> None:
    rig = await make_rig(raw(then="reset"))
    with pytest.raises(StreamBroken, match="without an answer"):
        await rig.stream()
    assert len(rig.engine.requests) == 1


async def test_an_engine_that_dies_later_on_a_kept_connection_had_the_request(make_rig: MakeRig) -> None:
    die = asyncio.Event()

    async def dies(_request: Request, wire: Wire) -> None:
        await die.wait()
        wire.reset()

    rig = await make_rig([OK, dies])
    await rig.stream()
    rig.again()
    running = asyncio.create_task(rig.stream())
    await rig.engine.until(lambda: len(rig.engine.requests) == 2)
    rig.pass_time(1.5)
    die.set()
    with pytest.raises(StreamBroken, match="without an answer"):
        await running
    assert [request.connection for request in rig.engine.requests] == [0, 0]


async def test_an_idle_connection_that_speaks_is_dropped(make_rig: MakeRig) -> None:
    async def script(request: Request, wire: Wire) -> None:
        await OK(request, wire)
        await wire.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")

    rig = await make_rig(script)
    await rig.stream()
    await rig.until(lambda: rig.pool.open_connections == 0)
    rig.again()
    await rig.stream()
    assert rig.down.ended


async def test_refused(make_rig: MakeRig) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        rig = await make_rig(OK, url=f"http://127.0.0.1:{port}")
        with pytest.raises(ConnectFailed, match="Connection refused") as caught:
            await rig.stream()
    assert str(port) not in caught.value.message
    assert rig.pool.open_connections == 0


async def test_connect_limit_when_nobody_accepts(make_rig: MakeRig) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(sock.getsockname())
        rig = await make_rig(OK, url=f"http://127.0.0.1:{sock.getsockname()[1]}")
        running = asyncio.create_task(rig.stream())
        await asyncio.sleep(0.02)
        rig.pass_time(2.1)
        with pytest.raises(ConnectFailed, match=r"no connection within 2 s \(limit: connect\)"):
            await running
        for filler in fillers:
            filler.close()


async def test_a_silent_engine_uses_up_only_its_own_places(make_rig: MakeRig) -> None:
    rig = await make_rig(silent(), limit=2)
    other = await make_rig(OK, limit=2)
    stuck = [asyncio.create_task(rig.whole()) for _ in range(3)]
    await rig.engine.until(lambda: len(rig.engine.requests) == 2)
    await other.stream()
    assert rig.pool.open_connections == 2
    rig.pass_time(2.1)
    with pytest.raises(ConnectFailed, match="none of the 2 connections"):
        await stuck[2]
    for task in stuck:
        task.cancel()
    await asyncio.gather(*stuck, return_exceptions=True)
    await rig.engine.left()


async def test_waiting_for_a_place_is_first_come_first_served(make_rig: MakeRig) -> None:
    rig = await make_rig(json_answer({}), limit=1)
    order: list[int] = []

    async def one(number: int) -> None:
        await rig.whole()
        order.append(number)

    tasks = [asyncio.create_task(one(number)) for number in range(8)]
    await asyncio.sleep(0)
    tasks[3].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [0, 1, 2, 4, 5, 6, 7]
    assert rig.engine.accepted == 1


async def test_close_ends_what_is_running(make_rig: MakeRig) -> None:
    rig = await make_rig(silent())
    running = asyncio.create_task(rig.stream())
    await rig.engine.until(lambda: bool(rig.engine.requests))
    rig.pool.close()
    assert rig.pool.open_connections == 0
    with pytest.raises(StreamBroken, match="gateway closed"):
        await running
    with pytest.raises(ConnectFailed, match="no longer in use"):
        await rig.stream()


async def test_retire_lets_running_answers_end(make_rig: MakeRig) -> None:
    go = asyncio.Event()

    async def script(request: Request, wire: Wire) -> None:
        await go.wait()
        await OK(request, wire)

    rig = await make_rig(script)
    running = asyncio.create_task(rig.stream())
    await rig.engine.until(lambda: bool(rig.engine.requests))
    rig.pool.retire()
    go.set()
    await running
    assert rig.down.ended
    assert rig.pool.open_connections == 0
    await rig.whole()  # was about to connect when the pool was retired
    assert rig.pool.open_connections == 0


async def test_a_big_body_goes_out_as_the_engine_takes_it(make_rig: MakeRig) -> None:
    rig = await make_rig(OK)
    body = bytes(range(256)) * (5 << 12)  # 5 MiB
    await rig.stream(body)
    assert rig.engine.requests[0].body == body
    assert rig.pool.idle_connections == 1


async def test_an_engine_that_never_reads_the_body(make_rig: MakeRig) -> None:
    look = asyncio.Event()

    async def script(_request: Request, wire: Wire) -> None:
        await look.wait()
        await wire.gone()

    rig = await make_rig(script, engine={"read_body": False})
    running = asyncio.create_task(rig.stream(b"x" * (32 << 20)))
    await rig.engine.until(lambda: bool(rig.engine.requests))
    await asyncio.sleep(0.05)
    (connection,) = rig.pool._open
    assert connection._transport is not None
    assert connection._transport.get_write_buffer_size() < 1 << 20
    rig.pass_time(30.1)
    with pytest.raises(TimedOut, match="first_token"):
        await running
    look.set()
    await rig.engine.left()


async def test_an_answer_before_the_body_is_taken_ends_the_connection(make_rig: MakeRig) -> None:
    refusal = raw(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}", then="silent")
    rig = await make_rig(refusal, engine={"read_body": False})
    with pytest.raises(BadStatus, match="status 413"):
        await rig.stream(b"x" * (32 << 20))
    assert rig.pool.open_connections == 0


@pytest.mark.parametrize("url", ["ftp://a", "http://", "gpu:8000", "/x"])
async def test_addresses(url: str) -> None:
    with pytest.raises(ValueError, match="http://host:port"):
        Pool(url, wheel=TimerWheel())


async def test_authority_and_base() -> None:
    wheel = TimerWheel()
    assert Pool("http://gpu:8000/v1/", wheel=wheel).authority == "gpu:8000"
    assert Pool("http://gpu:8000/v1/", wheel=wheel).base == "/v1"
    assert Pool("http://[::1]:81", wheel=wheel).authority == "[::1]:81"
    assert Pool("http://gpu", wheel=wheel).authority == "gpu"


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command")
    path = tmp_path_factory.mktemp("tls") / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(path), "-out", str(path) + ".crt", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return path


async def test_https(make_rig: MakeRig, certificate: Path) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(f"{certificate}.crt", certificate)
    trusted = ssl.create_default_context(cafile=f"{certificate}.crt")
    rig = await make_rig(OK, engine={"tls": server}, tls=trusted)
    await rig.stream()
    rig.again()
    await rig.stream()
    assert rig.down.ended
    assert rig.engine.accepted == 1
    distrusting = await make_rig(OK, engine={"tls": server})
    with pytest.raises(ConnectFailed, match="certificate is not accepted"):
        await distrusting.stream()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
        + chunk(token("a")),
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * (70 << 10) + b"\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n",
    ],
)
async def test_what_is_not_plain_http_is_broken(make_rig: MakeRig, answer: bytes) -> None:
    rig = await make_rig(raw(answer, then="silent"))
    with pytest.raises(StreamBroken, match="not HTTP"):
        await rig.stream()
    assert not rig.down.started
    await rig.engine.left()


async def test_a_bad_chunk_after_good_ones_is_a_cut(make_rig: MakeRig) -> None:
    rig = await make_rig(sse(token("a"), then="silent", end=False), connect_s=2.0)
    rig.engine.scripts = raw(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
        chunk(token("a")),
        b"zz\r\n",
        then="silent",
    )
    with pytest.raises(StreamBroken, match="not HTTP") as caught:
        await rig.stream()
    assert caught.value.started
    assert rig.down.aborted


async def test_a_stream_that_ends_with_the_connection(make_rig: MakeRig) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    rig = await make_rig(raw(head, token("a"), FINISH, DONE, then="close"))
    await rig.stream()
    assert rig.down.body == token("a") + FINISH + DONE
    assert rig.down.ended


async def test_interim_answers_are_skipped(make_rig: MakeRig) -> None:
    async def script(request: Request, wire: Wire) -> None:
        await wire.send(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 102 Processing\r\n\r\n")
        await OK(request, wire)

    rig = await make_rig(script)
    await rig.stream()
    assert rig.down.ended
    assert rig.pool.idle_connections == 1

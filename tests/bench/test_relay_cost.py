"""CPU of the relay per streamed chunk, in microseconds. The bounds are several times what an idle machine shows.

Printed with `pytest -s`; a shared machine makes the loopback figures swing by a factor of two.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest
import uvloop

from gateway.relay import Call, Limits, Meter, Pool, TimerWheel, relay_stream
from gateway.wire.chat_stream import ChatStream
from tests.relay.fake_client import MemoryClient, SocketClient
from tests.relay.fake_engine import DONE, FINISH, ROLE, STREAM_HEAD, chunk, token

INF = float("inf")
LIMITS = Limits(2.0, 300.0, 60.0, 30.0, 15.0, 1 << 20)


class DiscardingClient(MemoryClient):
    def write(self, data: bytes) -> bool:
        self.last = data
        return True


class FedTransport(asyncio.Transport):
    """A transport whose reads are handed to it."""

    def write(self, data: object) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        pass


async def fed(reads: list[bytes]) -> float:
    """CPU seconds that the relay's own code takes for so many reads of one chunk each; no system calls."""
    wheel = TimerWheel()
    pool = Pool("http://127.0.0.1:9", wheel=wheel)
    down = DiscardingClient()

    async def connected(_seconds: float, _fresh: bool) -> object:
        from gateway.relay.connection import Connection

        connection = Connection(pool)
        connection.connection_made(FedTransport())
        pool._open.add(connection)
        return connection

    pool._get = connected  # type: ignore[method-assign, assignment]
    call = Call("POST", "/", "h", body=b"{}")
    running = asyncio.create_task(relay_stream(pool, call, down, ChatStream("chat"), Meter(), LIMITS, wheel))
    await asyncio.sleep(0)
    (connection,) = pool._open
    connection.data_received(STREAM_HEAD)
    connection.data_received(chunk(ROLE + token("first")))
    receive = connection.data_received
    began = time.thread_time()
    for read in reads:
        receive(read)
    spent = time.thread_time() - began
    connection.data_received(chunk(FINISH + DONE) + b"0\r\n\r\n")
    await running
    assert down.ended
    connection.connection_lost(None)
    wheel.close()
    return spent


@pytest.mark.parametrize("events_a_read", [1, 8])
def test_cost_of_a_read(events_a_read: int) -> None:
    reads = [b"".join(chunk(token(f" word{n}")) for n in range(events_a_read))] * 10_000
    spent = min(uvloop.run(fed(reads)) for _ in range(3))
    per_chunk = spent / len(reads) / events_a_read * 1e6
    print(f"\nrelay code, {events_a_read} chunks a read: {per_chunk:.2f} us a chunk")
    assert per_chunk < 30.0


def engine(listener: socket.socket, count: int, gap_s: float) -> None:
    """One answer of `count` chunks, each sent alone, from a thread of its own."""
    sock, _ = listener.accept()
    with sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.recv(65536)
        sock.sendall(STREAM_HEAD)
        piece = chunk(token(" something"))
        for _ in range(count):
            sock.sendall(piece)
            if gap_s:
                time.sleep(gap_s)
        sock.sendall(chunk(FINISH + DONE) + b"0\r\n\r\n")


def swallow(sock: socket.socket) -> None:
    with sock:
        while sock.recv(1 << 20):
            pass


async def over_loopback(count: int, gap_s: float) -> tuple[float, int]:
    """CPU seconds of the loop's thread, system calls included, and the number of reads."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        sender = threading.Thread(target=engine, args=(listener, count, gap_s))
        sender.start()
        made: asyncio.Future[SocketClient] = loop.create_future()

        def client() -> SocketClient:
            made.set_result(SocketClient())
            return made.result()

        server = await loop.create_server(client, "127.0.0.1", 0)
        far = socket.create_connection(server.sockets[0].getsockname())
        reader = threading.Thread(target=swallow, args=(far,))
        reader.start()
        wheel = TimerWheel()
        pool = Pool(f"http://127.0.0.1:{port}", wheel=wheel)
        down, meter = await made, Meter()
        call = Call("POST", "/", "h", body=b"{}")
        began = time.thread_time()
        await relay_stream(pool, call, down, ChatStream("chat"), meter, LIMITS, wheel)
        spent = time.thread_time() - began
        assert meter.tokens == count
        down.abort()
        pool.close()
        await pool.wait_closed()
        server.close()
        await server.wait_closed()
        wheel.close()
        await loop.run_in_executor(None, sender.join)
        await loop.run_in_executor(None, reader.join)
    return spent, meter.chunks


@pytest.mark.parametrize(("count", "gap_s"), [(20_000, 0.0), (3_000, 0.0003)])
def test_cost_over_loopback(count: int, gap_s: float) -> None:
    spent, reads = uvloop.run(over_loopback(count, gap_s))
    per_chunk = spent / count * 1e6
    print(f"\nover loopback, {count / reads:.1f} chunks a read: {per_chunk:.1f} us a chunk")
    assert per_chunk < 150.0

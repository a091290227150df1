from __future__ import annotations

from gateway import clock
from tests.shell.engine_double import vllm
from tests.shell.fixtures import Start

BLOCK = 128 << 10


async def test_p2_ten_kilobytes_that_unpack_to_200_megabytes_are_refused_fast(start: Start) -> None:
    repeated = (BLOCK << 3 | 2).to_bytes(3, "little") + b" "  # a block of one byte, so many times
    bomb = b"\x28\xb5\x2f\xfd\x00\x58" + repeated * 1599 + (BLOCK << 3 | 3).to_bytes(3, "little") + b" "
    assert len(bomb) < 10_000
    assert 1600 * BLOCK > 200_000_000
    engine = vllm()
    gateway = await start({"b1": engine})
    began = clock.monotonic()
    reply = await gateway.ask(bomb, content_encoding="zstd")
    assert (reply.status, reply.error["code"]) == (413, "body_too_large")
    assert clock.monotonic() - began < 1
    assert engine.asked == []

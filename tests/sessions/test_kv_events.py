"""vLLM's KV events: read as it sends them, linked to prompts by counts, and heard over a real ZMQ socket."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from gateway.core.decide import decide
from gateway.core.experience import Experience
from gateway.core.lease import Ended, Lease
from gateway.core.ledger import Totals
from gateway.core.prefix.block_events import AllCleared, BlockMirror, Event, Lost, Removed, Stored
from gateway.core.prefix.chain import Chain, fingerprint
from gateway.core.prefix.index import PrefixIndex
from gateway.core.prefix.reuse import Segment
from gateway.engines.kv_event_batch import events_of
from gateway.fleet.kv_events import KvEvents
from tests.core.fleet import plan, request, snapshot, view

BLOCK = 16
NOW = 1000.0


def stored(*hashes: int, parent: int | None = None) -> list[Event]:
    return [Stored(hashes, parent, BLOCK)]


def prompt(*parts: str) -> Chain:
    """4 KiB a part: 1,024 tokens, if a token has four bytes."""
    return fingerprint([part.encode() * 1024 for part in parts])


def batch(*events: object, rank: int = 0) -> bytes:
    return msgspec.msgpack.encode([123.5, list(events), rank])


STORED = {
    "type": "BlockStored", "block_hashes": [7, 8], "parent_block_hash": None, "token_ids": [1] * 32, "block_size": 16,
    "lora_id": None, "medium": "GPU", "lora_name": None, "extra_keys": [None, None], "group_idx": 0,
    "kv_cache_spec_kind": "full_attention",
}  # fmt: skip


def test_events_are_read_as_maps_and_as_tagged_arrays() -> None:
    maps = batch(STORED, {"type": "BlockRemoved", "block_hashes": [7], "medium": "GPU"}, {"type": "AllBlocksCleared"})
    arrays = batch(
        ["BlockStored", [7, 8], None, [1] * 32, 16, None, "GPU"], ["BlockRemoved", [7], "GPU"], ["AllBlocksCleared"]
    )
    assert events_of(maps) == events_of(arrays) == [Stored((7, 8), None, 16), Removed((7,)), AllCleared()]


def test_other_ranks_media_and_groups_are_left_out() -> None:
    assert events_of(batch(STORED, rank=1)) == []
    assert events_of(batch(STORED | {"medium": "CPU"}, STORED | {"group_idx": 1}, {"type": "Unheard"})) == []


@pytest.mark.parametrize(
    "payload", [b"", b"\xc1", msgspec.msgpack.encode({"a": 1}), batch("what"), batch(STORED | {"block_hashes": 7})]
)
def test_what_is_no_batch_is_told(payload: bytes) -> None:
    with pytest.raises(ValueError, match="no"):
        events_of(payload)


def linked(mirror: BlockMirror, chain: Chain, tokens: int, events: list[Event], cached: int = 0) -> None:
    mirror.begin(chain)
    mirror.apply(events, NOW)
    mirror.end(chain, tokens, cached, NOW)


def test_a_prompt_is_linked_to_the_blocks_that_grew_while_it_ran() -> None:
    mirror, chain = BlockMirror(), prompt("aaaa")
    linked(mirror, chain, 1030, stored(*range(64)))
    assert mirror.links == 1
    assert mirror.resident(prompt("aaaa", "bbbb")) == (4096, False)
    mirror.apply([Removed(tuple(range(32, 64)))], NOW)
    there, gone = mirror.resident(prompt("aaaa", "bbbb")) or (0, False)
    assert gone
    assert there == pytest.approx(2048, rel=0.02)
    mirror.apply([AllCleared()], NOW)
    assert mirror.resident(chain) == (0, True)


def test_a_longer_turn_is_linked_where_the_engine_found_the_last_one() -> None:
    mirror = BlockMirror()
    linked(mirror, prompt("aaaa"), 1024, stored(*range(64)))
    linked(mirror, prompt("aaaa", "bbbb"), 2048, stored(*range(64, 128), parent=63), cached=1024)
    assert mirror.links == 2
    mirror.apply([Removed((100,))], NOW)
    there, gone = mirror.resident(prompt("aaaa", "bbbb", "cccc")) or (0, False)
    assert gone
    assert there == pytest.approx(100 / 128 * 8192, rel=0.01)
    assert mirror.resident(prompt("aaaa", "dddd")) == (4096, False)


def test_of_two_that_may_be_it_neither_is_taken() -> None:
    mirror, one, other = BlockMirror(), prompt("aaaa"), prompt("bbbb")
    mirror.begin(one)
    mirror.begin(other)
    mirror.apply(stored(*range(64)) + stored(*range(100, 164)), NOW)
    mirror.end(one, 1024, 0, NOW)
    mirror.end(other, 1024, 0, NOW)
    assert mirror.links == 0
    assert mirror.ambiguous == 2
    assert mirror.resident(one) is None


def test_others_traffic_of_another_length_is_no_matter() -> None:
    mirror, chain = BlockMirror(), prompt("aaaa")
    mirror.begin(chain)
    mirror.apply(stored(*range(64)) + stored(*range(100, 150)), NOW)
    mirror.end(chain, 1024, 0, NOW)
    assert mirror.resident(chain) == (4096, False)


def test_events_that_come_after_the_answer_are_waited_for() -> None:
    mirror, chain = BlockMirror(), prompt("aaaa")
    mirror.begin(chain)
    mirror.end(chain, 1024, 0, NOW)
    assert mirror.resident(chain) is None
    mirror.apply(stored(*range(64)), NOW + 0.1)
    assert mirror.resident(chain) == (4096, False)


def test_what_was_lost_leaves_nothing_known() -> None:
    mirror, chain = BlockMirror(), prompt("aaaa")
    linked(mirror, chain, 1024, stored(*range(64)))
    mirror.apply([Lost()], NOW)
    assert mirror.resident(chain) is None


def test_the_index_believes_the_engine_more_than_itself() -> None:
    index, chain = PrefixIndex(), prompt("aaaa")
    index.register("b", 2000)
    linked(index.mirror("b"), chain, 1024, stored(*range(64)))
    index.insert("b", chain, 1024)
    index.mirror("b").apply([Removed(tuple(range(16, 64)))], NOW)
    assert index.depth("b", chain) == 4096
    assert index.match(chain, ["b"])["b"].segments == (Segment(1024, 0),)
    index.forget("b")
    assert index.match(chain, ["b"])["b"].bytes == 0
    # And what was used too long ago for an LRU cache of this size may be there all the same.
    linked(index.mirror("b"), chain, 1024, stored(*range(64)))
    assert index.match(chain, ["b"])["b"].segments == (Segment(4096, 0),)


class Publisher:
    """What vLLM's publisher does: numbered messages, and the last of them again for who asks."""

    def __init__(self, folder: Path) -> None:
        self.zmq = pytest.importorskip("zmq.asyncio", reason="pip install 'kvgate[kv-events]'")
        import zmq

        self.address, self.again = f"ipc://{folder}/events", f"ipc://{folder}/replay"
        self.context = self.zmq.Context()
        self.out, self.replay = self.context.socket(zmq.PUB), self.context.socket(zmq.ROUTER)
        self.out.bind(self.address)
        self.replay.bind(self.again)
        self.sent: list[bytes] = []
        self.asked: list[int] = []
        self.task = asyncio.create_task(self._answer())

    async def publish(self, *events: object, lose: bool = False) -> None:
        payload = batch(*events)
        self.sent.append(payload)
        if not lose:
            await self.out.send_multipart([b"kv", (len(self.sent) - 1).to_bytes(8, "big"), payload])

    async def _answer(self) -> None:
        while True:
            client, _, start = await self.replay.recv_multipart()
            first = int.from_bytes(start, "big")
            self.asked.append(first)
            for number, payload in enumerate(self.sent[first:], first):
                await self.replay.send_multipart([client, b"", number.to_bytes(8, "big"), payload])
            await self.replay.send_multipart([client, b"", (-1).to_bytes(8, "big", signed=True), b""])

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.context.destroy(linger=0)


async def heard(seen: list[object], count: int) -> None:
    for _ in range(500):
        if len(seen) >= count:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(seen)


async def test_events_come_over_a_socket_and_missed_ones_are_asked_for(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path)
    seen: list[object] = []
    listener = KvEvents(
        "b", connect=publisher.address, listen=None, replay=publisher.again,
        took=seen.extend, lost=lambda: seen.append("lost"),
    )  # fmt: skip
    await publisher.publish(STORED, lose=True)  # before anybody listened
    listener.start()
    await asyncio.sleep(0.2)
    await publisher.publish({"type": "BlockRemoved", "block_hashes": [8], "medium": "GPU"})
    await heard(seen, 2)
    await publisher.publish({"type": "BlockRemoved", "block_hashes": [7], "medium": "GPU"}, lose=True)
    await publisher.publish({"type": "AllBlocksCleared"})
    await heard(seen, 4)
    assert seen == [Stored((7, 8), None, 16), Removed((8,)), Removed((7,)), AllCleared()]
    assert publisher.asked == [0, 2]
    await listener.stop()
    await publisher.close()


async def test_what_can_not_be_had_again_is_told(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path)
    seen: list[object] = []
    listener = KvEvents(
        "b", connect=publisher.address, listen=None, replay=None, took=seen.extend, lost=lambda: seen.append("lost")
    )
    listener.start()
    await asyncio.sleep(0.2)
    await publisher.publish(STORED)
    await publisher.publish(STORED, lose=True)
    await publisher.publish({"type": "AllBlocksCleared"})
    await heard(seen, 3)
    assert seen == [Stored((7, 8), None, 16), "lost", AllCleared()]
    await listener.stop()
    await publisher.close()


def test_what_an_engine_says_decides_what_is_expected_of_it() -> None:
    """The engine says that it lost the conversation: the next turn is not expected to find it there."""
    there = view("b")
    experience, chain, asked = Experience(), prompt("aaaa"), request(prompt=1024, thread=1)
    experience.blocks_told("b", "m", [], NOW)
    lease = Lease("l", asked, chain, decide(plan(), asked, snapshot(there), NOW, 0.0), "b", there.offers[0], 16, NOW)
    experience.sent(lease, there)
    experience.first_token(lease, Totals(), NOW + 1.0)
    experience.blocks_told("b", "m", stored(*range(64)), NOW + 1.0)
    ended = Ended(completed=True, prompt_tokens=1024, output_tokens=5, cached_tokens=0)
    experience.learn(lease, ended, None, Totals(), NOW + 2.0)
    longer = prompt("aaaa", "bbbb")
    assert experience.hits(longer, ("m",), (there,), NOW)["b"].share == 0.5
    experience.blocks_told("b", "m", [Removed(tuple(range(64)))], NOW + 3.0)
    assert "b" not in experience.hits(longer, ("m",), (there,), NOW)

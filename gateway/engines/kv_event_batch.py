"""Batches of vLLM's KV cache events as they come over ZMQ. Seen on 0.32; tagged arrays as older releases write them.

A message has three frames: a topic, a sequence number of 8 bytes (big-endian, from 0), and in msgpack
`[time, [events], data-parallel rank]`. Only whole blocks are told of, of prompts and of answers.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.core.prefix.block_events import AllCleared, Event, Removed, Stored

__all__ = ["events_of", "sequence_of"]

_decode = msgspec.msgpack.Decoder().decode
_STORED = ("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium")
_REMOVED = ("block_hashes", "medium")
_GPU = (None, "GPU", "gpu")


def sequence_of(frame: bytes) -> int:
    """The number of a message; -1 ends an answer to a question for earlier ones. Raises ValueError."""
    if len(frame) != 8:
        raise ValueError("no sequence number")
    return int.from_bytes(frame, "big", signed=True)


def events_of(payload: bytes) -> list[Event]:
    """The events of the GPU's full-attention blocks; others are left out. Raises ValueError for what is no batch."""
    try:
        batch = _decode(payload)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError("not msgpack") from error
    if not isinstance(batch, list) or len(batch) < 2 or not isinstance(batch[1], list):
        raise ValueError("no batch of events")
    if len(batch) > 2 and batch[2]:
        return []  # another rank's cache is not this one's, and which rank serves a request is not told
    found = (_event(one) for one in batch[1])
    return [event for event in found if event is not None]


def _event(one: Any) -> Event | None:
    if isinstance(one, list) and one:
        names = _STORED if one[0] == "BlockStored" else _REMOVED
        one = {"type": one[0], **dict(zip(names, one[1:], strict=False))}
    if not isinstance(one, dict):
        raise ValueError("no event")
    kind = one.get("type")
    if kind == "AllBlocksCleared":
        return AllCleared()
    if one.get("medium") not in _GPU or one.get("group_idx") or kind not in ("BlockStored", "BlockRemoved"):
        return None
    hashes = one.get("block_hashes")
    if not isinstance(hashes, list) or not all(isinstance(each, int | bytes) for each in hashes):
        raise ValueError("no block hashes")
    if kind == "BlockRemoved":
        return Removed(tuple(hashes))
    parent, size = one.get("parent_block_hash"), one.get("block_size")
    if not isinstance(size, int) or size < 1 or not (parent is None or isinstance(parent, int | bytes)):
        raise ValueError("a block without its place")
    return Stored(tuple(hashes), parent, size)

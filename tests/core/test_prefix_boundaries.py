"""Conversations shorter than a block are recognised by their message boundaries."""

from __future__ import annotations

import pytest

from gateway.core.prefix.chain import Chain, fingerprint
from gateway.core.prefix.index import PrefixIndex


def _chain(*messages: bytes) -> Chain:
    ends, total = [], 0
    for message in messages:
        total += len(message)
        ends.append(total)
    return fingerprint(messages, ends, b"salt")


FIRST = (b"system: be brief. ", b"user: what is a slide rule? ")
SECOND = (*FIRST, b"assistant: a ruler that multiplies. ", b"user: who made it? ")


@pytest.mark.parametrize("sequences", [None, 2], ids=["blocks", "slots"])
def test_the_next_turn_of_a_short_conversation_matches_all_of_the_last(sequences: int | None) -> None:
    index = PrefixIndex()
    index.register("b", 4096, sequences)
    first = _chain(*FIRST)
    index.insert("b", first, 14)
    match = index.match(_chain(*SECOND), ["b"])["b"]
    assert match.bytes == first.total
    assert index.match(_chain(b"system: be brief. ", b"user: something else "), ["b"])["b"].bytes == len(FIRST[0])


def test_boundaries_reach_past_the_last_whole_block() -> None:
    long = (b"x" * 700, b"user: one ")
    index = PrefixIndex()
    index.register("b", 65536)
    index.insert("b", _chain(*long), 200)
    assert index.match(_chain(*long, b"assistant: two "), ["b"])["b"].bytes == 710
    assert index.match(_chain(long[0], b"user: other "), ["b"])["b"].bytes == 700


def test_common_bytes_never_exceed_the_common_prefix() -> None:
    one, other = _chain(b"aaaa", b"bbbb"), _chain(b"aaaa", b"cccc")
    assert one.common_bytes(other) == 4
    assert one.common_bytes(_chain(b"aaaab", b"bbb")) == 8  # the same bytes, cut elsewhere
    assert one.common_bytes(_chain(b"zzzz", b"bbbb")) == 0

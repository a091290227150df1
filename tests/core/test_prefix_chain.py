"""Fingerprints: equal bytes up to a block give equal hashes, unequal bytes never."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.prefix.anchors import Anchor, AnchorStore
from gateway.core.prefix.chain import fingerprint

TEXT = st.integers(0, 40_000).flatmap(lambda size: st.integers(0, 255).map(lambda seed: text(size, seed)))


def text(size: int, seed: int) -> bytes:
    """`size` bytes that differ between seeds at every position."""
    return bytes((i * 31 + i // 251 + seed) % 256 for i in range(size))


def test_blocks_grow_with_position() -> None:
    chain = fingerprint([bytes(3 << 20)])
    sizes = [end - start for start, end in itertools.pairwise((0, *chain.ends))]
    assert sizes == [512] * 64 + [2048] * 496 + [16_384] * 128
    assert chain.ends[63] == 32 << 10
    assert chain.ends[-1] == chain.total == 3 << 20


def test_prompts_beyond_the_table_are_covered_too() -> None:
    chain = fingerprint([bytes((16 << 20) + 40_000)])
    assert chain.ends[-1] == (16 << 20) + 2 * 16_384
    assert len(set(chain.hashes)) == len(chain.hashes)


def test_last_partial_block_has_no_hash() -> None:
    assert fingerprint([b"x" * 511]).hashes == ()
    assert len(fingerprint([b"x" * 512]).hashes) == 1
    assert len(fingerprint([b"x" * 1023]).hashes) == 1


def test_empty_prompt() -> None:
    chain = fingerprint([])
    assert (chain.hashes, chain.ends, chain.total) == ((), (), 0)


@settings(deadline=None)
@given(TEXT, st.lists(st.integers(0, 40_000), max_size=5))
def test_cutting_into_pieces_changes_nothing(whole: bytes, cuts: list[int]) -> None:
    edges = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    pieces = [whole[a:b] for a, b in itertools.pairwise(edges)]
    assert fingerprint(pieces, (), b"s") == fingerprint([whole], (), b"s")


@settings(deadline=None)
@given(TEXT, TEXT)
def test_an_extended_conversation_shares_all_full_blocks(start: bytes, more: bytes) -> None:
    before, after = fingerprint([start]), fingerprint([start, more])
    assert after.hashes[: len(before.hashes)] == before.hashes
    assert before.common_blocks(after) == len(before.hashes)


@settings(deadline=None)
@given(st.integers(600, 40_000), st.data())
def test_common_bytes_never_exceed_the_true_prefix(size: int, data: st.DataObject) -> None:
    one = text(size, 0)
    at = data.draw(st.integers(0, size - 1))
    other = one[:at] + bytes([one[at] ^ 1]) + one[at + 1 :]
    a, b = fingerprint([one]), fingerprint([other])
    shared = a.common_bytes(b)
    assert shared <= at
    assert shared == max((end for end in a.ends if end <= at), default=0)


def test_salt_separates() -> None:
    one, other = fingerprint([b"x" * 5000], (5000,), b"a"), fingerprint([b"x" * 5000], (5000,), b"b")
    assert not set(one.hashes) & set(other.hashes)
    assert one.head != other.head
    assert one.anchors[0][0] != other.anchors[0][0]


def test_head_covers_four_kib() -> None:
    base = text(9000, 1)
    same = fingerprint([base[:4096] + bytes(5000)])
    assert fingerprint([base]).head == same.head
    assert fingerprint([base]).head != fingerprint([b"?" + base[1:]]).head
    assert fingerprint([base[:3000]]).head != fingerprint([base[:3001]]).head


def test_anchors_stand_at_the_last_eight_messages() -> None:
    ends = list(range(300, 300 * 13, 300))
    chain = fingerprint([text(300 * 12, 3)], ends)
    assert [end for _, end in chain.anchors] == ends[-8:]


@settings(deadline=None)
@given(TEXT.filter(bool), TEXT)
def test_the_anchor_of_a_turn_is_found_in_the_next(start: bytes, more: bytes) -> None:
    store = AnchorStore()
    store.learn("m", fingerprint([start], [len(start)]), Anchor(123))
    after = fingerprint([start, more], [len(start), len(start) + len(more)])
    assert store.find("m", after) == (Anchor(123), 1 if more else 0)
    assert store.find("other", after) is None


def test_anchor_store_prefers_the_longest_and_forgets_the_oldest() -> None:
    store = AnchorStore(capacity=4)
    turns = [fingerprint([text(300 * n, 0)], range(300, 300 * n + 1, 300)) for n in range(1, 6)]
    store.learn("m", turns[0], Anchor(70))
    store.learn("m", turns[1], Anchor(140))
    assert store.find("m", turns[4]) == (Anchor(140), 3)
    for seed in range(1, 20):
        store.learn("m", fingerprint([text(300, seed)], [300]), Anchor(1))
    assert store.find("m", turns[4]) is None
    assert len(store) <= 4


def test_a_prompt_that_ends_within_a_message_is_no_anchor() -> None:
    store = AnchorStore()
    store.learn("m", fingerprint([text(700, 0)], [300]), Anchor(123))
    assert len(store) == 0


@pytest.mark.parametrize("size", [100_000, 1_000_000])
def test_number_of_entries_stays_small(size: int) -> None:
    assert len(fingerprint([bytes(size)]).hashes) < 600

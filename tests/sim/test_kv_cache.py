"""Blocks are conserved, shared by content, and evicted from the tail of the least recently used text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.sim.kv_cache import PagedKvCache
from gateway.sim.text import ByteText, SegmentText


def stored(cache: PagedKvCache, keys: list[int]) -> list[int]:
    blocks = cache.take(len(keys))
    for block, key in zip(blocks, keys, strict=True):
        cache.register(block, key)
    return blocks


def test_released_blocks_stay_cached_until_taken() -> None:
    cache = PagedKvCache(4)
    blocks = stored(cache, [1, 2, 3])
    cache.release(blocks)
    assert cache.free_blocks == 4
    assert cache.match([1, 2, 3, 4]) == blocks


def test_the_tail_of_a_text_is_evicted_before_its_head() -> None:
    cache = PagedKvCache(3)
    blocks = stored(cache, [1, 2, 3])
    cache.release(blocks)
    cache.take(1)
    assert cache.match([1, 2, 3]) == blocks[:2]


def test_the_least_recently_used_text_goes_first() -> None:
    cache = PagedKvCache(4)
    old, new = stored(cache, [1, 2]), stored(cache, [8, 9])
    cache.release(new)
    cache.release(old)
    cache.hold(new)
    cache.release(new)
    cache.take(2)
    assert cache.match([1]) == []
    assert cache.match([8, 9]) == new


def test_a_held_hit_is_not_available_to_others() -> None:
    cache = PagedKvCache(3)
    blocks = stored(cache, [1, 2])
    cache.release(blocks)
    assert cache.available(blocks) == 1
    cache.hold(blocks)
    assert cache.free_blocks == 1


def test_more_than_the_free_blocks_cannot_be_taken() -> None:
    cache = PagedKvCache(2)
    with pytest.raises(ValueError, match="3 blocks wanted, 2 free"):
        cache.take(3)


def test_without_prefix_caching_nothing_matches() -> None:
    cache = PagedKvCache(2, prefix_caching=False)
    cache.release(stored(cache, [1]))
    assert cache.match([1]) == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 6), max_size=4)), max_size=40))
def test_used_and_free_blocks_always_add_up(work: list[tuple[int, list[int]]]) -> None:
    cache, held = PagedKvCache(12), []
    for kind, keys in work:
        if kind == 0 and held:
            cache.release(held.pop())
        elif kind == 1 and len(set(keys)) <= cache.free_blocks:
            held.append(stored(cache, sorted(set(keys))))
        else:
            found = cache.match(keys)
            unique = list(dict.fromkeys(found))
            cache.hold(unique)
            held.append(unique)
        assert cache.used_blocks + cache.free_blocks == 12
        assert cache.used_blocks == len({block for blocks in held for block in blocks})
        assert cache.references() == sum(map(len, held))
    for blocks in held:
        cache.release(blocks)
    assert cache.free_blocks == 12
    assert cache.references() == 0


def chain(text: ByteText | SegmentText, blocks: int, size: int) -> list[int]:
    keys, parent = [], 0
    for at in range(blocks):
        parent = text.key(at * size, (at + 1) * size, parent)
        keys.append(parent)
    return keys


def test_texts_share_keys_up_to_their_first_difference() -> None:
    one, two = ByteText(b"a" * 64 + b"b" * 64), ByteText(b"a" * 64 + b"c" * 64)
    assert chain(one, 2, 8)[:2] == chain(two, 2, 8)[:2]
    assert chain(one, 4, 8)[2] != chain(two, 4, 8)[2]


def test_equal_blocks_after_a_difference_are_not_equal_in_a_chain() -> None:
    one, two = ByteText(b"x" * 32 + b"same" * 8), ByteText(b"y" * 32 + b"same" * 8)
    assert chain(one, 2, 8)[1] != chain(two, 2, 8)[1]


def test_segments_of_equal_ids_are_equal_text() -> None:
    one, two = SegmentText([(1, 20), (2, 20)]), SegmentText([(1, 20), (3, 20)])
    keys_one, keys_two = chain(one, 5, 8), chain(two, 5, 8)
    assert keys_one[:2] == keys_two[:2]
    assert keys_one[2] != keys_two[2]  # the block that spans both segments


def test_a_longer_segment_of_the_same_id_begins_with_the_shorter_one() -> None:
    assert chain(SegmentText([(1, 16)]), 2, 8) == chain(SegmentText([(1, 40)]), 2, 8)

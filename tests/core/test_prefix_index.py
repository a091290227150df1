"""Who holds what: both cache designs, driven as requests drive them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.prefix.chain import Chain, fingerprint
from gateway.core.prefix.index import PrefixIndex
from gateway.core.prefix.reuse import Match, Segment


def prompt(*parts: int) -> Chain:
    """A chain of 4 KiB parts; equal leading numbers are a common prefix."""
    return fingerprint([part.to_bytes(4, "big") * 1024 for part in parts])


def index(capacity: int = 100_000, sequences: int | None = None, entries: int = 262_144) -> PrefixIndex:
    made = PrefixIndex(entries)
    made.register("b", capacity, sequences)
    return made


def test_nothing_is_known_of_a_new_backend() -> None:
    chain = prompt(1, 2)
    assert index().match(chain, ["b", "unheard of"]) == {"b": Match(8192), "unheard of": Match(8192)}


def test_a_prompt_is_held_from_its_first_token_on() -> None:
    known, chain = index(), prompt(1, 2)
    known.begin("b", chain, 2000)
    assert known.depth("b", prompt(1, 2, 3)) == 0
    assert known.match(prompt(1, 3), ["b"])["b"].pending == 4096
    known.confirm("b", chain)
    match = known.match(prompt(1, 3), ["b"])["b"]
    assert (match.bytes, match.pinned, match.pending, match.share) == (4096, 4096, 0, 0.5)
    known.end("b", chain)
    match = known.match(prompt(1, 3), ["b"])["b"]
    assert (match.bytes, match.pinned) == (4096, 0)


def test_a_request_that_failed_before_its_first_token_leaves_nothing() -> None:
    known, chain = index(), prompt(1, 2)
    known.begin("b", chain, 2000)
    known.end("b", chain)
    assert known.match(chain, ["b"])["b"] == Match(8192)


def test_pins_count_requests() -> None:
    known, one, other = index(), prompt(1, 2), prompt(1, 3)
    for chain in (one, other):
        known.begin("b", chain, 2000)
        known.confirm("b", chain)
    known.end("b", one)
    assert known.match(one, ["b"])["b"].pinned == 4096
    known.end("b", other)
    assert known.match(one, ["b"])["b"].pinned == 0
    known.end("b", other)
    assert known.match(one, ["b"])["b"].bytes == 8192


def test_reuse_distance_grows_with_what_the_cache_took_in() -> None:
    known, chain = index(capacity=10_000), prompt(1)
    known.insert("b", chain, 1000)
    assert known.match(chain, ["b"])["b"].segments == (Segment(4096, 0),)
    known.advance("b", 3000)
    assert known.match(chain, ["b"])["b"].segments == (Segment(4096, 3),)
    known.advance("b", 16_999)
    assert known.match(chain, ["b"])["b"].segments == (Segment(4096, 7),)
    known.advance("b", 1)
    assert known.depth("b", chain) == 0


def test_what_was_cached_moves_no_clock() -> None:
    known, chain = index(capacity=10_000), prompt(1)
    for _ in range(100):
        known.insert("b", chain, 1000)
    other = prompt(2)
    known.insert("b", other, 1000)
    assert known.match(chain, ["b"])["b"].segments == (Segment(4096, 2),)
    known.insert("b", chain, 1000, cached=0)
    assert known.match(other, ["b"])["b"].segments == (Segment(4096, 2),)


def test_segments_tell_near_from_far() -> None:
    known = index(capacity=10_000)
    known.insert("b", prompt(1, 2), 2000)
    known.advance("b", 5000)
    known.insert("b", prompt(1, 3), 2000)
    match = known.match(prompt(1, 2), ["b"])["b"]
    assert match.bytes == 8192
    assert match.segments == (Segment(4096, 0), Segment(8192, 4))


def test_pinned_blocks_are_near_however_long_ago_they_came() -> None:
    known, chain = index(capacity=10_000), prompt(1)
    known.begin("b", chain, 1000)
    known.confirm("b", chain)
    known.advance("b", 50_000)
    assert known.match(prompt(1, 2), ["b"])["b"].segments == (Segment(4096, 0),)
    known.end("b", chain)
    assert known.depth("b", chain) == 0


def test_restart_and_removal() -> None:
    known, chain = index(), prompt(1)
    known.begin("b", chain, 1000)
    known.confirm("b", chain)
    known.forget("b")
    assert known.depth("b", chain) == 0
    known.end("b", chain)
    known.insert("b", chain, 1000)
    known.remove("b")
    assert known.depth("b", chain) == 0
    assert known.entries == 0
    known.end("b", chain)
    assert known.match(chain, ["b"])["b"] == Match(4096)


def test_version_follows_contents() -> None:
    known, chain = index(), prompt(1)
    known.register("c", 1000)
    seen = [known.version]
    of_c = known.version_of("c")
    for change in (
        lambda: known.begin("b", chain, 1000),
        lambda: known.confirm("b", chain),
        lambda: known.end("b", chain, output_tokens=5),
        lambda: known.insert("b", prompt(2), 1000),
        lambda: known.forget("b"),
    ):
        change()
        seen.append(known.version)
    assert seen == sorted(set(seen))
    assert known.version_of("c") == of_c
    known.register("b", 100_000)
    known.match(chain, ["b"])
    assert known.version == seen[-1]


PARTS = st.lists(st.integers(0, 2), min_size=1, max_size=4).map(tuple)


@settings(deadline=None)
@given(st.lists(PARTS, max_size=12), PARTS, st.sampled_from([None, 3]))
def test_depth_is_never_over_the_true_common_prefix(
    history: list[tuple[int, ...]], asked: tuple[int, ...], sequences: int | None
) -> None:
    known = index(sequences=sequences)
    for parts in history:
        known.insert("b", prompt(*parts), 1000 * len(parts))
    match = known.match(prompt(*asked), ["b"])["b"]
    true = max((common(parts, asked) for parts in history), default=0) * 4096
    assert match.bytes <= true
    if sequences is None:
        assert match.bytes == true  # the cache was never full
    assert [segment.end for segment in match.segments] == sorted({segment.end for segment in match.segments})
    assert (match.segments[-1].end if match.segments else 0) == match.bytes


@settings(deadline=None)
@given(
    st.lists(st.tuples(PARTS, st.sampled_from(["begin", "confirm", "end", "advance"])), max_size=40),
    st.sampled_from([None, 2]),
)
def test_any_order_of_events_ends_clean(events: list[tuple[tuple[int, ...], str]], sequences: int | None) -> None:
    known, chains = index(5000, sequences), {}
    for parts, event in events:
        chain = chains.setdefault(parts, prompt(*parts))
        if event == "begin":
            known.begin("b", chain, 1000 * len(parts))
        elif event == "confirm":
            known.confirm("b", chain)
        elif event == "end":
            known.end("b", chain)
        else:
            known.advance("b", 700)
        match = known.match(chain, ["b"])["b"]
        assert 0 <= match.pinned <= match.bytes <= match.total
        assert all(0 <= segment.bin < 8 for segment in match.segments)
    for chain in chains.values():
        known.end("b", chain)
    for chain in chains.values():
        match = known.match(chain, ["b"])["b"]
        assert (match.pinned, match.pending) == (0, 0)


def common(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def test_memory_stays_flat_over_many_distinct_prompts() -> None:
    known, names, peak = PrefixIndex(entries=20_000), [f"b{i}" for i in range(5)], 0
    for name in names:
        known.register(name, 10**9)  # so large that only the bound on entries can hold it
    for i in range(200_000):
        chain = Chain((i,), (512,), (), 512, i)
        known.insert(names[i % 5], chain, 128)
        if i % 500 == 0:
            peak = max(peak, known.entries)
    assert 10_000 < peak <= 20_000
    assert known.depth(names[4], chain) == 512
    assert known.depth(names[0], Chain((0,), (512,), (), 512, 0)) == 0


def test_entries_out_of_reach_go_even_when_few() -> None:
    known = index(capacity=1000)
    for part in range(100):
        known.insert("b", prompt(part), 1000)
    assert known.entries <= 5 * 8


def test_slots_do_not_share() -> None:
    known, one = index(100_000, sequences=2), prompt(1, 2)
    known.begin("b", one, 2000)
    known.confirm("b", one)
    assert known.depth("b", prompt(1, 3)) == 0
    known.end("b", one)
    assert known.depth("b", prompt(1, 3)) == 4096


def test_slots_remember_only_so_many_sequences() -> None:
    known = index(100_000, sequences=2)
    for part in (1, 2, 3):
        known.insert("b", prompt(part, part), 2000)
    # The first lost its slot: what is left of it may be in the engine's memory, which only its answers tell.
    assert known.match(prompt(1, 1), ["b"])["b"].segments == (Segment(8192, 6),)
    match = known.match(prompt(2, 2), ["b"])["b"]
    assert match.segments == (Segment(8192, 4),)
    assert known.match(prompt(3, 3), ["b"])["b"].segments == (Segment(8192, 0),)


def test_a_longer_turn_takes_over_the_slot_of_the_shorter() -> None:
    known = index(100_000, sequences=2)
    known.insert("b", prompt(9, 9), 2000)
    for turn in ((1,), (1, 2), (1, 2, 3)):
        known.insert("b", prompt(*turn), 1000 * len(turn))
    assert known.depth("b", prompt(9, 9)) == 8192
    assert known.depth("b", prompt(1, 2, 3)) == 3 * 4096


def test_slots_hold_no_more_tokens_than_the_cache() -> None:
    known = index(3000, sequences=8)
    for part in (1, 2, 3):
        known.insert("b", prompt(part), 1400)
    bins = [known.match(prompt(part), ["b"])["b"].segments[0].bin for part in (1, 2, 3)]
    assert bins == [6, 4, 0]


def test_short_prompts_take_slots_too() -> None:
    known = index(100_000, sequences=2)
    known.insert("b", prompt(1), 1000)
    hello = fingerprint([b"hello"])
    known.insert("b", hello, 5)
    known.insert("b", fingerprint([b"hello"]), 5)
    assert known.depth("b", prompt(1)) == 4096
    known.insert("b", fingerprint([b"good bye"]), 5)
    assert known.match(prompt(1), ["b"])["b"].segments[0].bin == 6


def test_a_slot_that_failed_holds_nothing() -> None:
    known, longer = index(100_000, sequences=2), prompt(1, 2)
    known.insert("b", prompt(1), 1000)
    known.begin("b", longer, 2000)
    known.end("b", longer)
    assert known.depth("b", prompt(1)) == 0


def test_a_change_of_kind_starts_over() -> None:
    known = index()
    known.insert("b", prompt(1), 1000)
    known.register("b", 100_000, sequences=4)
    assert known.depth("b", prompt(1)) == 0

"""Shared KV blocks stay reserved as long as somebody uses them."""

from __future__ import annotations

import random

import pytest

from gateway.core.footprint import Footprint
from gateway.core.ledger import Ledger, Limits, Reserved
from gateway.core.prefix.chain import Chain, fingerprint
from gateway.core.prefix.sharing import Sharing

BLOCK = 512
"""Bytes; a token is one byte here. What is orphaned is rounded up by a token a block."""
LIMITS = Limits(kv=10**9, alone=10**9, sequences=10**6, backlog=1e9)


def text(*blocks: int) -> Chain:
    return fingerprint([bytes([number]) * BLOCK for number in blocks])


def footprint(kv: int) -> Footprint:
    return Footprint(kv, kv, 0, kv, 1, 1, None, kv, 0)


def test_what_the_first_reserved_stays_for_the_second() -> None:
    sharing = Sharing()
    sharing.enter("first", text(1, 2, 3), 3 * BLOCK, 0)
    sharing.enter("second", text(1, 2, 4), 3 * BLOCK, 2 * BLOCK)
    left = sharing.leave("first")
    assert 2 * BLOCK <= left <= 2 * (BLOCK + 1)
    assert sharing.leave("second") == -left
    assert len(sharing) == 0


def test_who_shares_nothing_leaves_nothing() -> None:
    sharing = Sharing()
    sharing.enter("one", text(1, 2), 2 * BLOCK, 0)
    sharing.enter("other", text(7, 8), 2 * BLOCK, 0)
    assert [sharing.leave(name) for name in ("one", "one", "unknown", "other")] == [0, 0, 0, 0]


def test_who_reserved_it_all_needs_nothing_of_others() -> None:
    sharing = Sharing()
    sharing.enter("one", text(1, 2), 2 * BLOCK, 0)
    sharing.enter("twin", text(1, 2), 2 * BLOCK, 0)
    assert sharing.leave("one") == sharing.leave("twin") == 0


def test_a_guest_that_ends_changes_nothing_while_its_host_runs() -> None:
    sharing = Sharing()
    sharing.enter("host", text(1, 2), 2 * BLOCK, 0)
    sharing.enter("guest", text(1, 3), 2 * BLOCK, BLOCK)
    assert sharing.leave("guest") == 0
    assert sharing.leave("host") == 0


def test_a_block_left_out_in_part_counts_as_left_out() -> None:
    sharing = Sharing()
    sharing.enter("host", text(1, 2, 3), 3 * BLOCK, 0)
    sharing.enter("guest", text(1, 2, 3), 3 * BLOCK, BLOCK + BLOCK // 2)
    assert 2 * BLOCK <= sharing.leave("host") <= 2 * (BLOCK + 1)


def test_the_ledger_keeps_what_is_orphaned() -> None:
    ledger = Ledger()
    for lease, kv in (("host", 1000), ("guest", 200)):
        assert isinstance(ledger.reserve(lease, "a", footprint(kv), 0.1, LIMITS, 0.0), Reserved)
    ledger.settle("host", 1.0, None, 600)
    assert ledger.totals("a", 1.0).reserved == 800
    ledger.settle("host", 1.5, None, 600)
    ledger.settle("guest", 2.0, None, -600)
    assert ledger.totals("a", 2.0).reserved == 0


@pytest.mark.parametrize("seed", range(30))
def test_never_less_is_reserved_than_the_blocks_in_use_and_in_the_end_nothing(seed: int) -> None:
    chance, sharing, ledger = random.Random(seed), Sharing(), Ledger()
    running: dict[str, tuple[int, ...]] = {}
    for i in range(300):
        if running and chance.random() < 0.5:
            lease = chance.choice(sorted(running))
            del running[lease]
            ledger.settle(lease, float(i), None, sharing.leave(lease))
        else:
            lease, blocks = f"r{i}", tuple(chance.randint(1, 2) for _ in range(chance.randint(1, 6)))
            held = max((_common(blocks, other) for other in running.values()), default=0)
            # Sometimes less than what is shared is left out.
            free = chance.randint(0, min(held, len(blocks) - 1) * BLOCK)
            sharing.enter(lease, text(*blocks), len(blocks) * BLOCK, free)
            ledger.reserve(lease, "a", footprint(len(blocks) * BLOCK - free), 0.1, LIMITS, float(i))
            running[lease] = blocks
        used = {blocks[: at + 1] for blocks in running.values() for at in range(len(blocks))}
        assert ledger.totals("a", float(i)).reserved >= len(used) * BLOCK
    for lease in sorted(running):
        ledger.settle(lease, 1e3, None, sharing.leave(lease))
    assert ledger.totals("a", 1e3).reserved == 0


@pytest.mark.parametrize("seed", range(30))
def test_estimates_that_differ_never_leave_a_block_in_use_without_its_reservation(seed: int) -> None:
    """Each request counts the tokens of its bytes in its own way, and leaves out no more than others reserved."""
    chance, sharing, ledger = random.Random(seed), Sharing(), Ledger()
    running: dict[str, tuple[int, ...]] = {}
    least: dict[tuple[int, ...], int] = {}
    for i in range(200):
        if running and chance.random() < 0.5:
            lease = chance.choice(sorted(running))
            del running[lease]
            ledger.settle(lease, float(i), None, sharing.leave(lease))
        else:
            lease, blocks = f"r{i}", tuple(chance.randint(1, 2) for _ in range(chance.randint(1, 6)))
            shared = max((_common(blocks, other) for other in running.values()), default=0)
            prompt = int(len(blocks) * BLOCK * chance.uniform(0.5, 2.0))
            mine = prompt * shared // len(blocks)
            held = sharing.held(text(*blocks), shared * BLOCK)
            assert (held > 0) is (shared > 0)
            free = min(mine, held)
            sharing.enter(lease, text(*blocks), prompt, free)
            ledger.reserve(lease, "a", footprint(prompt - free), 0.1, LIMITS, float(i))
            running[lease] = blocks
            for at in range(len(blocks)):
                key, tokens = blocks[: at + 1], prompt * (at + 1) // len(blocks) - prompt * at // len(blocks)
                least[key] = min(least.get(key, tokens), tokens)
        used = {blocks[: at + 1] for blocks in running.values() for at in range(len(blocks))}
        assert ledger.totals("a", float(i)).reserved >= sum(least[key] for key in used) - len(used)
    for lease in sorted(running):
        ledger.settle(lease, 1e3, None, sharing.leave(lease))
    assert ledger.totals("a", 1e3).reserved == 0


def test_what_others_reserved_for_a_prefix_bounds_what_is_left_out_of_a_prompt_that_starts_with_it() -> None:
    sharing = Sharing()
    sharing.enter("host", text(1, 2), BLOCK, 0)
    assert [sharing.held(text(1, 3), pinned) for pinned in (0, BLOCK, 2 * BLOCK)] == [0, BLOCK // 2, 0]
    sharing.enter("guest", text(1, 2, 3), 6 * BLOCK, BLOCK)
    assert sharing.held(text(1, 2, 3), 3 * BLOCK) == BLOCK + 2 * BLOCK
    sharing.leave("host")
    sharing.leave("guest")
    assert sharing.held(text(1, 2, 3), 3 * BLOCK) == 0


def _common(one: tuple[int, ...], two: tuple[int, ...]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))

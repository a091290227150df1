"""Which of its slots llama.cpp is told to use, where it is told."""

from __future__ import annotations

from gateway.core.prefix.chain import Chain, fingerprint
from gateway.core.prefix.slot_residency import SlotResidency

RULES = b"the rules that all agents share. " * 60


def prompt(name: str, turns: int = 1) -> Chain:
    return fingerprint([RULES, *(f"{name} {turn} ".encode() * 150 for turn in range(turns))])


def test_agents_with_the_same_rules_have_slots_of_their_own_while_there_are_any() -> None:
    for chosen, expected in ((True, 3), (False, 1)):
        cache = SlotResidency(100_000, 4, chosen=chosen)
        slots = set()
        for name in ("a", "b", "c"):
            chain = prompt(name)
            cache.begin(chain, 1000)
            cache.confirm(chain)
            slots.add(cache.slot_of(chain))
            cache.end(chain)
        assert len(slots) == expected  # left to itself the server takes the slot that looks most alike


def test_a_conversation_goes_on_in_its_own_slot() -> None:
    cache = SlotResidency(100_000, 4, chosen=True)
    slots = []
    for turns in (1, 2, 3):
        for name in ("a", "b"):
            chain = prompt(name, turns)
            cache.begin(chain, 1000 * turns)
            slots.append(cache.slot_of(chain))
            cache.confirm(chain)
            cache.end(chain)
    assert slots == [0, 1, 0, 1, 0, 1]


def test_without_a_free_slot_the_one_goes_whose_loss_costs_least() -> None:
    gone = prompt("gone", 3)
    cache = SlotResidency(100_000, 3, chosen=True, worth=lambda chain: 0.0 if chain is gone else 0.9)
    for chain, tokens in ((prompt("a"), 500), (prompt("b"), 6000), (gone, 5000)):
        cache.insert(chain, tokens)
    match = cache.match(fingerprint([b"something else " * 100]))
    assert match.displaced is gone
    new = fingerprint([b"something else " * 100])
    cache.begin(new, 400)
    assert cache.slot_of(new) == 2


def test_what_nobody_comes_back_for_makes_room_though_others_are_empty() -> None:
    cache = SlotResidency(100_000, 3, chosen=True, worth=lambda _: 0.0)
    cache.insert(prompt("a"), 1000)
    assert cache.match(prompt("b")).displaced is not None  # its rules need not be read again


def test_a_busy_slot_is_not_given_away() -> None:
    cache = SlotResidency(100_000, 2, chosen=True)
    first, second, third = prompt("a"), prompt("b"), prompt("c")
    for chain in (first, second):
        cache.begin(chain, 1000)
    assert {cache.slot_of(first), cache.slot_of(second)} == {0, 1}
    cache.begin(third, 1000)
    assert cache.slot_of(third) is None


def test_what_lost_its_slot_is_remembered_and_believed_in_less() -> None:
    cache = SlotResidency(100_000, 1, chosen=True, worth=lambda _: 0.0)
    cache.insert(prompt("a"), 1000)
    cache.insert(fingerprint([b"something else " * 100]), 400)
    assert cache.match(prompt("a")).segments[0].bin == 6
    for number in range(20):
        cache.insert(fingerprint([f"{number} something ".encode() * 100]), 400)
    assert cache.match(prompt("a")).bytes == 0

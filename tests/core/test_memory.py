from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.memory import LARGE, WORK, MemoryBudget

MIB = 1024 * 1024


def test_small_ones_use_what_there_is() -> None:
    budget = MemoryBudget(1500)
    first, second = budget.hold(), budget.hold()
    assert first.takes(body=1000)
    assert not second.takes(body=600)
    assert budget.held == 1000
    first.release()
    assert second.takes(body=600)
    assert budget.held == 600


def test_a_large_one_leaves_room_for_its_work_and_for_small_ones() -> None:
    budget = MemoryBudget(150 * MIB)
    first, second, third = budget.hold(), budget.hold(), budget.hold()
    assert first.takes(body=10 * MIB, copy=10 * MIB)
    assert second.takes(body=10 * MIB, copy=10 * MIB)  # 40, and 60 for the work on one of them
    assert third.takes(body=10 * MIB, copy=10 * MIB)
    assert not budget.hold().takes(body=10 * MIB, copy=10 * MIB)
    assert budget.hold().takes(body=LARGE)


def test_what_was_worked_on_leaves_its_room_to_others() -> None:
    budget = MemoryBudget(160 * MIB)
    first, second = budget.hold(), budget.hold()
    assert first.takes(body=20 * MIB)
    assert not second.takes(body=4 * MIB, copy=4 * MIB, answer=0)
    first.worked()
    assert second.takes(body=4 * MIB, copy=4 * MIB)


def test_one_that_is_too_large_for_the_limit_is_served_when_it_is_alone() -> None:
    budget = MemoryBudget(16 * MIB)
    first, second = budget.hold(), budget.hold()
    assert first.takes(body=60 * MIB)
    assert not second.takes(body=2 * MIB)
    called: list[bool] = []
    budget.when_less(second, lambda: called.append(second.takes(body=2 * MIB)))
    first.release()
    assert called == [True]
    budget.forget(second)
    second.release()
    assert called == [True]


def test_what_is_there_already_is_counted_whether_there_is_room_or_not() -> None:
    budget = MemoryBudget(MIB)
    with budget.hold() as hold:
        hold.settles(answer=5 * MIB)
        assert budget.held == hold.bytes == 5 * MIB
        hold.settles(answer=0)
        assert budget.held == 0
        hold.settles(answer=2)
    assert budget.held == 0


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 40 * MIB), st.booleans()), max_size=60))
def test_the_sum_is_right_and_within_the_limit_unless_one_is_alone(steps: list[tuple[int, int, bool]]) -> None:
    budget = MemoryBudget(200 * MIB)
    holds = [budget.hold() for _ in range(5)]
    for index, size, end in steps:
        hold = holds[index]
        if end:
            hold.release()
            continue
        before = budget.held
        if hold.takes(body=size):
            large = [each for each in holds if each.bytes > LARGE]
            if budget.held > before and size > LARGE and len(large) > 1:
                assert budget.held + WORK * size <= budget.limit
        else:
            assert budget.held == before
        assert budget.held == sum(each.bytes for each in holds)
    for hold in holds:
        hold.release()
    assert budget.held == 0


def test_small_ones_have_their_part_whatever_a_large_one_takes() -> None:
    budget = MemoryBudget(16 * MIB)
    assert budget.hold().takes(body=60 * MIB)
    assert budget.hold().takes(body=MIB)
    assert budget.hold().takes(body=MIB)
    assert not budget.hold().takes(body=1)


def test_what_is_kept_of_streams_needs_no_room_for_work() -> None:
    budget = MemoryBudget(160 * MIB)
    assert budget.hold().keeps(answer=60 * MIB)
    assert budget.hold().keeps(answer=60 * MIB)
    assert not budget.hold().keeps(answer=60 * MIB)


def test_others_wait_is_not_said_to_one_that_waits_itself() -> None:
    budget = MemoryBudget(MIB)
    first, second = budget.hold(), budget.hold()
    assert not budget.others_wait(first)
    budget.when_less(second, lambda: None)
    assert budget.others_wait(first)
    assert not budget.others_wait(second)

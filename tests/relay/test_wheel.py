from __future__ import annotations

import asyncio
import random

from gateway.relay import TimerWheel
from tests.relay.conftest import INF, FakeClock


async def test_fires_late_by_a_tick_at_most_and_never_early() -> None:
    clock = FakeClock()
    wheel = TimerWheel(tick_s=0.05, clock=clock)
    chance = random.Random(7)
    fired: dict[int, float] = {}
    wanted = {number: chance.uniform(0.0, 30.0) for number in range(300)}
    for number, seconds in wanted.items():
        wheel.start(seconds, lambda number=number: fired.setdefault(number, clock.now))
    while len(wheel):
        clock.now += 0.05
        wheel.advance()
    for number, seconds in wanted.items():
        assert seconds <= fired[number] - 1000.0 <= seconds + 0.1
    wheel.close()


async def test_touch_moves_the_deadline() -> None:
    clock = FakeClock()
    wheel = TimerWheel(clock=clock)
    fired: list[float] = []
    timer = wheel.start(1.0, lambda: fired.append(clock.now))
    for _ in range(50):
        clock.now += 0.9
        timer.touch(clock.now)
        wheel.advance()
    assert fired == []
    assert timer.active
    clock.now += 1.05
    wheel.advance()
    assert fired == [clock.now]
    assert not timer.active


async def test_cancelled_and_infinite_timers_are_nowhere() -> None:
    wheel = TimerWheel(clock=FakeClock())
    timer = wheel.start(1.0, lambda: None)
    never = wheel.start(INF, lambda: None)
    assert len(wheel) == 1
    assert not never.active
    timer.cancel()
    timer.cancel()
    assert len(wheel) == 0
    never.restart(2.0)
    assert len(wheel) == 1
    wheel.close()
    assert len(wheel) == 0


async def test_a_callback_may_cancel_and_start_others() -> None:
    clock = FakeClock()
    wheel = TimerWheel(clock=clock)
    fired: list[str] = []
    second = wheel.start(1.0, lambda: fired.append("second"))

    def first() -> None:
        fired.append("first")
        second.cancel()
        wheel.start(0.5, lambda: fired.append("third"))

    second.cancel()
    wheel.start(1.0, first)
    second.restart()
    clock.now += 1.1
    wheel.advance()
    assert fired == ["first"]
    clock.now += 100.0
    wheel.advance()
    assert fired == ["first", "third"]
    assert len(wheel) == 0


async def test_one_failing_callback_loses_no_other() -> None:
    clock = FakeClock()
    wheel = TimerWheel(clock=clock)
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: faults.append(context["exception"]))
    fired: list[int] = []
    wheel.start(1.0, lambda: fired.append(1 // 0))
    wheel.start(1.0, lambda: fired.append(2))
    clock.now += 2.0
    wheel.advance()
    assert fired == [2]
    assert [type(fault) for fault in faults] == [ZeroDivisionError]


async def test_the_loop_drives_it() -> None:
    wheel = TimerWheel(tick_s=0.005)
    done = asyncio.get_running_loop().create_future()
    wheel.start(0.02, lambda: done.set_result(None))
    async with asyncio.timeout(5):
        await done
    assert len(wheel) == 0

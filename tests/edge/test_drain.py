from __future__ import annotations

import asyncio
import time

from gateway.edge.drain import Drain, DrainTimes


class House:
    """A process with `busy` answers in progress, that notes what happens to it."""

    def __init__(self, busy: int = 0) -> None:
        self.busy = busy
        self.log: list[str] = []
        self.stuck_cleanup = False

    def drain(self, **times: float) -> Drain:
        return Drain(
            DrainTimes(**{"settle": 0.0, "limit": 5.0, "farewell": 0.2, "cleanup": 0.2, **times}),
            not_ready=lambda: self.log.append("not ready"),
            stop_accepting=self.stop_accepting,
            running=lambda: self.busy,
            cut=self.cut,
            cleanup=self.cleanup,
            tick=0.005,
        )

    async def stop_accepting(self) -> None:
        self.log.append("stop accepting")

    def cut(self) -> int:
        self.log.append("cut")
        cut, self.busy = self.busy, 0
        return cut

    async def cleanup(self) -> None:
        self.log.append("cleanup")
        if self.stuck_cleanup:
            await asyncio.Event().wait()


async def test_with_nothing_running_it_goes_straight_through() -> None:
    house = House()
    assert await house.drain().run() == 0
    assert house.log == ["not ready", "stop accepting", "cleanup"]


async def test_streams_finish_and_nobody_is_cut() -> None:
    house = House(busy=2)
    run = asyncio.create_task(house.drain(settle=0.05).run())
    await asyncio.sleep(0)
    assert house.log == ["not ready"]
    await asyncio.sleep(0.1)
    assert house.log == ["not ready", "stop accepting"]
    house.busy = 0
    assert await asyncio.wait_for(run, 1) == 0
    assert house.log[-1] == "cleanup"


async def test_the_rest_is_cut_at_the_limit() -> None:
    house = House(busy=3)
    assert await asyncio.wait_for(house.drain(limit=0.05).run(), 2) == 3
    assert house.log == ["not ready", "stop accepting", "cut", "cleanup"]


async def test_a_second_signal_waits_for_nobody() -> None:
    house = House(busy=1)
    drain = house.drain(settle=30.0, limit=60.0)
    run = asyncio.create_task(drain.run())
    await asyncio.sleep(0.01)
    drain.hurry()
    assert await asyncio.wait_for(run, 1) == 1


async def test_a_stuck_cleanup_does_not_keep_the_process() -> None:
    house = House()
    house.stuck_cleanup = True
    started = time.monotonic()
    assert await house.drain(cleanup=0.05).run() == 0
    assert time.monotonic() - started < 1

"""The demo's tour: what a user came for, shown on real engines and checked as it is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gateway import clock
from gateway.local.tour import Answer, Tour, expect, served

__all__ = ["STEPS", "Step"]

SYSTEM = (
    "You are a patient guide in a small museum of computing. You answer in one or two short sentences, you never make "
    "lists, and when you do not know something you say so. The museum has three rooms: one with mechanical "
    "calculators, one with vacuum tubes and core memory, one with home computers."
)

_REFUSED_WITHIN_S = 10.0
_BACK_WITHIN_S = 120.0
"""Seconds; generous, so that a slow machine fails no step."""
_LOOK_S = 0.1


async def streamed_answer(tour: Tour) -> str:
    """A real model answers through the one URL, token by token."""
    tour.turns = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "What did people use before electronic computers?"},
    ]
    tour.audience.asked(tour.turns[-1]["content"])
    tour.audience.doing("an engine reads the prompt")
    answer = await tour.chat(tour.turns, max_tokens=40, temperature=0)
    served(answer)
    expect(answer.ttft is not None, "no first token")
    tour.home = answer.backend
    tour.turns.append({"role": "assistant", "content": answer.text})
    return f"{answer.output} tokens from '{answer.backend}', the first after {answer.ttft or 0:.1f} s"


async def second_turn(tour: Tour) -> str:
    """The next turn goes where the conversation's KV cache is; the engine counts what it could reuse."""
    tour.turns.append({"role": "user", "content": "Which room should I see first?"})
    tour.audience.asked(tour.turns[-1]["content"])
    tour.audience.doing(f"'{tour.home}' reads what is new of the prompt")
    answer = await tour.chat(tour.turns, max_tokens=30, temperature=0)
    served(answer)
    tour.decision = answer.decision
    expect(answer.backend == tour.home, f"it went to '{answer.backend}', but its prefix is on '{tour.home}'")
    expect(answer.cached > answer.prompt // 2, f"the engine reused only {answer.cached} of {answer.prompt} tokens")
    return (
        f"'{answer.backend}' again: by its own count {answer.cached} of {answer.prompt} prompt tokens came from its "
        f"cache, so the first token took {answer.ttft or 0:.1f} s"
    )


async def too_long_for_small(tour: Tour) -> str:
    """A prompt that the small backend can't hold goes to the one that can."""
    words = " ".join(f"Item {number} is a wooden box." for number in range(80))
    tour.audience.asked(f"{words[:51]} … How many boxes?")
    tour.audience.doing("'large' reads a long prompt")
    answer = await tour.chat([{"role": "user", "content": f"{words} How many boxes?"}], max_tokens=8)
    served(answer)
    expect(answer.backend == "large", f"it went to '{answer.backend}'")
    return (
        f"{answer.prompt} prompt tokens by the count of '{answer.backend}', which answered; "
        f"'small' holds {tour.engines['small'].context}"
    )


async def large_device(tour: Tour) -> str:
    """Another model on another engine behind the same URL: an emulated vLLM with the profile of a large device."""
    sentence = "The quick brown fox jumps over the lazy dog. "
    tour.audience.asked(f"{sentence.strip()} … (2,000 times, to {tour.big_model})")
    tour.audience.doing("an emulated RTX PRO 6000 reads 20,000 tokens")
    answer = await tour.chat([{"role": "user", "content": sentence * 2_000}], model=tour.big_model, max_tokens=24)
    served(answer)
    return (
        f"{answer.prompt:,} prompt tokens to '{answer.backend}', the first token after {answer.ttft or 0:.1f} s "
        "(its text is made up, its timing is the device's)"
    )


async def too_long_for_all(tour: Tour) -> str:
    """What fits nowhere is refused at once, with the limit and the estimate."""
    tour.audience.asked("A long story. A long story. … (4,000 times)")
    answer = await tour.chat([{"role": "user", "content": "A long story. " * 4_000}], max_tokens=8)
    expect(answer.status == 400, f"HTTP {answer.status} instead of 400")
    expect(answer.error.get("code") == "context_length_exceeded", f"code {answer.error.get('code')}")
    expect(answer.seconds < _REFUSED_WITHIN_S, f"the refusal took {answer.seconds:.1f} s")
    said = f"HTTP 400 {answer.error['code']} after {answer.seconds * 1000:.0f} ms, no engine was troubled"
    return f"{said}: “{answer.error['message']}”"


async def more_than_fits(tour: Tour) -> str:
    """More work than the engines have slots: the rest waits in the gateway, not in an engine."""
    slots = sum(engine.slots for engine in tour.engines.values())
    count = slots * 3
    asked = [asyncio.create_task(_short(tour, number)) for number in range(count)]
    deepest = busiest = 0
    try:
        while not all(task.done() for task in asked):
            waiting = int((await tour.admin_json("/admin/queue"))["waiting"])
            working, deferred = await _in_engines(tour)
            deepest, busiest = max(deepest, waiting), max(busiest, working)
            expect(deferred == 0, f"{deferred} requests wait inside an engine")
            answered = sum(task.done() for task in asked)
            tour.audience.doing(f"{working} in the engines, {waiting} waiting here, {answered} of {count} answered")
            await asyncio.sleep(_LOOK_S)
        answers = [task.result() for task in asked]
    finally:
        for task in asked:
            task.cancel()
    for answer in answers:
        served(answer)
    expect(deepest > 0, "nothing ever waited in the gateway")
    split = ", ".join(f"{name} {sum(one.backend == name for one in answers)}" for name in tour.engines)
    return (
        f"{count} requests over {slots} slots: up to {deepest} waited in the gateway; the engines counted at most "
        f"{busiest} at work and none queued inside; all were answered ({split})"
    )


async def _short(tour: Tour, number: int) -> Answer:
    return await tour.chat([{"role": "user", "content": f"Say the number {number}."}], shown=False, max_tokens=12)


async def _in_engines(tour: Tour) -> tuple[int, int]:
    """Requests at work and requests queued inside the engines, by their own metrics."""
    working = [await tour.engine_metric(name, "llamacpp:requests_processing") for name in tour.engines]
    deferred = [await tour.engine_metric(name, "llamacpp:requests_deferred") for name in tour.engines]
    return sum(working), sum(deferred)


async def engine_killed(tour: Tour) -> str:
    """The engine that held the conversation dies; the next request is answered by the other."""
    victim = tour.home
    survivor = next(name for name in tour.engines if name != victim)
    tour.audience.doing(f"'{victim}' gets a kill -9")
    await tour.engines[victim].kill()
    tour.audience.asked("What is core memory? One short sentence.")
    tour.audience.doing("somebody else reads the prompt")
    answer = await tour.chat(
        [{"role": "user", "content": "What is core memory? One short sentence."}], max_tokens=20, temperature=0
    )
    served(answer)
    expect(answer.backend == survivor, f"'{answer.backend}' answered instead of '{survivor}'")
    tour.audience.doing(f"'{victim}' is started again")
    started = clock.monotonic()
    await tour.engines[victim].start()
    while not await _in_use(tour, victim):
        expect(clock.monotonic() - started < _BACK_WITHIN_S, f"'{victim}' was not taken back in time")
        await asyncio.sleep(_LOOK_S)
    return (
        f"'{victim}' was killed, '{survivor}' answered with {answer.output} tokens; '{victim}' was started again and "
        f"was in use after {clock.monotonic() - started:.1f} s"
    )


async def _in_use(tour: Tour, name: str) -> bool:
    views = (await tour.admin_json("/admin/backends"))["backends"]
    return any(view["name"] == name and view["health"] in ("up", "trial") for view in views)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to show: a title of at most 56 characters, and what does it and returns what was proven."""

    title: str
    run: Callable[[Tour], Awaitable[str]]


STEPS = (
    Step("A real model streams its answer through one URL", streamed_answer),
    Step("The second turn lands where its prefix is cached", second_turn),
    Step("Too long for the small backend: the large one answers", too_long_for_small),
    Step("Another model, on an emulated large device", large_device),
    Step("Too long for every backend: refused, with the numbers", too_long_for_all),
    Step("More work than fits waits in the gateway's queue", more_than_fits),
    Step("An engine is killed: the other one answers", engine_killed),
)

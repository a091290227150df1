"""The demo's tour: what a user came for, shown on real engines and checked as it is shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from gateway import clock
from gateway.local.launch import LlamaServer

__all__ = ["STEPS", "Answer", "Step", "StepFailed", "Tour"]

SYSTEM = (
    "You are a patient guide in a small museum of computing. You answer in one or two short sentences, you never make lists, "
    "and when you do not know something you say so. The museum has three rooms: one with mechanical calculators, one with "
    "vacuum tubes and core memory, one with home computers."
)


class StepFailed(Exception):
    """A promise of the tour did not hold; the message says which."""


@dataclass(slots=True)
class Answer:
    """What came back for one request. Times in seconds."""

    status: int
    headers: dict[str, str]
    text: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    ttft: float | None = None

    @property
    def backend(self) -> str:
        """Which backend answered."""
        return self.headers.get("x-kvgate-backend", "?")

    @property
    def cached(self) -> int:
        """Prompt tokens that the engine itself says it took from its cache."""
        return int((self.usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)


@dataclass(slots=True)
class Tour:
    """What the steps share: the gateway's addresses and the engines behind it."""

    url: str
    admin: str
    real_model: str
    big_model: str
    engines: dict[str, LlamaServer]
    http: aiohttp.ClientSession
    say: Callable[[str], None]
    """Prints a line of text under the running step."""
    token: Callable[[str], None]
    """Prints streamed text as it comes."""
    turns: list[dict[str, str]] = field(default_factory=list)
    home: str = ""

    async def chat(
        self, messages: list[dict[str, str]], *, model: str | None = None, stream: bool = True, **rest: Any
    ) -> Answer:
        """One chat completion through the gateway."""
        body: dict[str, Any] = {"model": model or self.real_model, "messages": messages, "stream": stream, **rest}
        if stream:
            body["stream_options"] = {"include_usage": True}
        started = clock.monotonic()
        async with self.http.post(f"{self.url}/v1/chat/completions", json=body) as reply:
            answer = Answer(reply.status, {k.lower(): v for k, v in reply.headers.items()})
            if reply.status != 200 or not stream:
                whole = await reply.json()
                answer.error = whole.get("error") or {}
                answer.usage = whole.get("usage") or {}
                if whole.get("choices"):
                    answer.text = whole["choices"][0]["message"]["content"] or ""
            else:
                await self._read_stream(reply, answer, started, shown=rest.get("n", 1) == 1)
        answer.seconds = clock.monotonic() - started
        return answer

    async def _read_stream(self, reply: aiohttp.ClientResponse, answer: Answer, started: float, *, shown: bool) -> None:
        done = False
        async for line in reply.content:
            if not line.startswith(b"data: "):
                continue
            if line.strip() == b"data: [DONE]":
                done = True
                continue
            event = json.loads(line[6:])
            if "error" in event:
                raise StepFailed(f"the stream ended with an error: {event['error'].get('message')}")
            answer.usage = event.get("usage") or answer.usage
            for choice in event.get("choices") or ():
                piece = choice.get("delta", {}).get("content") or ""
                if piece and answer.ttft is None:
                    answer.ttft = clock.monotonic() - started
                answer.text += piece
                if piece and shown:
                    self.token(piece)
        if not done:
            raise StepFailed("the stream ended without its [DONE]")

    async def admin_json(self, path: str) -> Any:
        """GET from the admin port."""
        async with self.http.get(f"{self.admin}{path}") as reply:
            return await reply.json()

    def quiet(self) -> Tour:
        """The same tour with streamed text not printed (for several requests at once)."""
        return Tour(
            self.url, self.admin, self.real_model, self.big_model, self.engines, self.http, self.say, lambda _: None
        )


def expect(holds: bool, otherwise: str) -> None:
    """Raise StepFailed unless it holds."""
    if not holds:
        raise StepFailed(otherwise)


def served(answer: Answer) -> None:
    """Raise StepFailed unless the answer is a good one with text."""
    expect(answer.status == 200, f"status {answer.status}: {answer.error.get('message')}")
    expect(bool(answer.text), "the answer has no text")


async def streamed_answer(tour: Tour) -> str:
    """A real model answers through the one URL, token by token."""
    tour.turns = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "What did people use before electronic computers?"},
    ]
    answer = await tour.chat(tour.turns, max_tokens=40, temperature=0)
    served(answer)
    expect(answer.ttft is not None, "no first token")
    tour.home = answer.backend
    tour.turns.append({"role": "assistant", "content": answer.text})
    return (
        f"{answer.usage['completion_tokens']} tokens from '{answer.backend}', the first after {answer.ttft or 0:.1f} s"
    )


async def second_turn(tour: Tour) -> str:
    """The next turn goes where the conversation's KV cache is; the engine counts what it could reuse."""
    tour.turns.append({"role": "user", "content": "Which room should I see first?"})
    answer = await tour.chat(tour.turns, max_tokens=30, temperature=0)
    served(answer)
    expect(answer.backend == tour.home, f"it went to '{answer.backend}', but its prefix is on '{tour.home}'")
    prompt = int(answer.usage["prompt_tokens"])
    expect(answer.cached > prompt // 2, f"the engine reused only {answer.cached} of {prompt} prompt tokens")
    return f"'{answer.backend}' again: {answer.cached} of {prompt} prompt tokens came from its cache (the engine's own count)"


async def too_long_for_small(tour: Tour) -> str:
    """A prompt that the small backend can't hold goes to the one that can."""
    words = " ".join(f"Item {number} is a wooden box." for number in range(90))
    answer = await tour.chat([{"role": "user", "content": f"{words} How many boxes?"}], max_tokens=8)
    served(answer)
    expect(answer.backend == "large", f"it went to '{answer.backend}'")
    return f"{answer.usage['prompt_tokens']} prompt tokens: 'small' holds {tour.engines['small'].context}, so '{answer.backend}' answered"


async def large_device(tour: Tour) -> str:
    """Another model on another engine behind the same URL: an emulated vLLM with the profile of a large device."""
    text = "The quick brown fox jumps over the lazy dog. " * 2_000
    answer = await tour.chat([{"role": "user", "content": text}], model=tour.big_model, max_tokens=24)
    served(answer)
    return f"{answer.usage['prompt_tokens']:,} prompt tokens to '{answer.backend}', first token after {answer.ttft or 0:.1f} s"


async def too_long_for_all(tour: Tour) -> str:
    """What fits nowhere is refused at once, with the limit and the estimate."""
    answer = await tour.chat([{"role": "user", "content": "A long story. " * 4_000}], max_tokens=8)
    expect(answer.status == 400, f"status {answer.status} instead of 400")
    expect(answer.error.get("code") == "context_length_exceeded", f"code {answer.error.get('code')}")
    expect(answer.seconds < 2, f"the refusal took {answer.seconds:.1f} s")
    return f"HTTP 400 {answer.error['code']}: {answer.error['message']}"


async def more_than_fits(tour: Tour) -> str:
    """More work than the engines have slots: the rest waits in the gateway, not in an engine."""
    quiet = tour.quiet()
    slots = sum(engine.slots for engine in tour.engines.values())
    count = slots * 3
    asked = [
        asyncio.create_task(quiet.chat([{"role": "user", "content": f"Say the number {number}."}], max_tokens=12))
        for number in range(count)
    ]
    deepest = 0
    try:
        while not all(task.done() for task in asked):
            queue = await tour.admin_json("/admin/queue")
            deepest = max(deepest, int(queue["waiting"]))
            deferred = await _deferred(tour)
            expect(deferred == 0, f"{deferred} requests wait inside an engine")
            await asyncio.sleep(0.1)
        answers = [task.result() for task in asked]
    finally:
        for task in asked:
            task.cancel()
    for answer in answers:
        served(answer)
    expect(deepest > 0, "nothing ever waited in the gateway")
    shares = {name: sum(answer.backend == name for answer in answers) for name in tour.engines}
    split = ", ".join(f"{name} {share}" for name, share in shares.items())
    return f"{count} requests over {slots} slots: up to {deepest} waited in the gateway, none in an engine; all answered ({split})"


async def _deferred(tour: Tour) -> int:
    """Requests queued inside the engines, by their own metrics."""
    total = 0
    for engine in tour.engines.values():
        async with tour.http.get(f"{engine.url}/metrics") as reply:
            for line in (await reply.text()).splitlines():
                if line.startswith("llamacpp:requests_deferred "):
                    total += int(float(line.split()[1]))
    return total


async def engine_killed(tour: Tour) -> str:
    """The engine that held the conversation dies; the next turn is answered by the other."""
    victim = tour.home
    survivor = next(name for name in tour.engines if name != victim)
    await tour.engines[victim].kill()
    answer = await tour.chat(
        [{"role": "user", "content": "What is core memory? One short sentence."}], max_tokens=20, temperature=0
    )
    served(answer)
    expect(answer.backend == survivor, f"'{answer.backend}' answered instead of '{survivor}'")
    await tour.engines[victim].start()
    started = clock.monotonic()
    while not await _in_use(tour, victim):
        expect(clock.monotonic() - started < 30, f"'{victim}' was not taken back within 30 s")
        await asyncio.sleep(0.2)
    return f"'{victim}' was killed, '{survivor}' answered; '{victim}' was restarted and is back in use"


async def _in_use(tour: Tour, name: str) -> bool:
    views = (await tour.admin_json("/admin/backends"))["backends"]
    return any(view["name"] == name and view["health"] in ("up", "trial") for view in views)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to show: a title and what does it."""

    title: str
    run: Callable[[Tour], Awaitable[str]]


STEPS = (
    Step("A streamed answer from a real model, through one URL", streamed_answer),
    Step("The second turn lands where its prefix is cached", second_turn),
    Step("A prompt too long for the small backend goes to one that holds it", too_long_for_small),
    Step("A long prompt for another model, on an emulated large device", large_device),
    Step("A prompt too long for every backend is refused, helpfully", too_long_for_all),
    Step("More work than fits waits in the gateway's queue", more_than_fits),
    Step("An engine is killed: the other one answers", engine_killed),
)

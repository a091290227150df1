"""Agents whose tools take their time, before two unlike llama.cpp servers: how much of what could be cached was.

`python -m tests.real.tool_agents` prints the table. Every agent asks for a title first, then sends its conversation,
each turn longer by an answer and a tool's result, with a pause for the tool. What could be cached of a turn is the turn
before with its answer, by the engine's own counts. Then the same agents are sent to fresh servers in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import aiohttp

from gateway import clock
from gateway.local.launch import LlamaServer
from gateway.local.models import require_engine, tiny_path
from tests.real.gateway_process import backend, serving

__all__ = ["Cached", "by_gateway", "in_turn"]

RULES = "You mend pumps. Read the gauge before you touch a valve, and write down what you found. " * 50
RESULT = "The gauge shows four bar; the valve at the far end is shut and its wheel does not turn. "
TITLE = "Give this conversation a title of three words."


@dataclass(slots=True)
class Cached:
    """Tokens that were found in caches, and those that could have been; `moves`: turns that changed the backend."""

    found: int = 0
    possible: int = 0
    turns: int = 0
    moves: int = 0
    seconds: float = 0.0
    waits: list[float] = field(default_factory=list)
    """Seconds of each turn after the first, whole."""

    @property
    def share(self) -> float:
        return self.found / self.possible if self.possible else 0.0

    def row(self, name: str) -> str:
        waits = sorted(self.waits)
        each = f"turns {sum(waits) / len(waits):5.2f} s, p90 {waits[int(0.9 * len(waits))]:5.2f} s"
        return (
            f"{name:12} cached {self.found:7,} of {self.possible:7,} tokens {self.share:6.1%}  moves {self.moves:3}"
            f"  {each}  all {self.seconds:5.1f} s"
        )


@dataclass(slots=True)
class _Agent:
    http: aiohttp.ClientSession
    url: Callable[[], str]
    number: int
    chance: random.Random
    seen: Cached

    async def play(self, turns: int, pause: float) -> None:
        name = f"agent {self.number}"
        question = f"{name}: pump {self.number} is silent. " + RESULT * self.chance.randint(10, 20)
        await self._ask([{"role": "system", "content": TITLE}, {"role": "user", "content": question}])
        messages = [{"role": "system", "content": RULES}, {"role": "user", "content": question}]
        before, home = 0, ""
        for turn in range(turns):
            began = clock.monotonic()
            answer, where = await self._ask(messages)
            usage = answer["usage"]
            if turn:
                self.seen.turns += 1
                self.seen.possible += before
                self.seen.found += min(before, usage["prompt_tokens_details"]["cached_tokens"])
                self.seen.moves += where != home
                self.seen.waits.append(clock.monotonic() - began)
            before, home = usage["prompt_tokens"] + usage["completion_tokens"], where
            messages.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"] or "."})
            messages.append({"role": "user", "content": f"{name}, turn {turn}: " + RESULT * self.chance.randint(6, 14)})
            await asyncio.sleep(pause * self.chance.uniform(0.2, 1.8))

    async def _ask(self, messages: list[dict[str, str]]) -> tuple[dict, str]:  # type: ignore[type-arg]
        body = {"model": "tiny", "messages": messages, "max_tokens": 12, "temperature": 0, "ignore_eos": True}
        url = self.url()
        headers = {"x-session-id": f"agent-{self.number}"}
        async with self.http.post(f"{url}/v1/chat/completions", json=body, headers=headers) as reply:
            assert reply.status == 200, await reply.text()
            return await reply.json(), reply.headers.get("x-kvgate-backend", url)


def _servers(slots: tuple[int, int], flags: tuple[str, ...]) -> tuple[LlamaServer, LlamaServer]:
    """One reads in small steps, the other in large ones."""
    model = tiny_path()
    return (
        LlamaServer(model, "tiny", context=4096 * slots[0], slots=slots[0], flags=("-b", "64", "-ub", "64", *flags)),
        LlamaServer(model, "tiny", context=6144 * slots[1], slots=slots[1], flags=flags),
    )


async def _play(url: Callable[[], str], agents: int, turns: int, pause: float, seed: int) -> Cached:
    seen, began = Cached(), clock.monotonic()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        await asyncio.gather(
            *(
                _Agent(http, url, number, random.Random(f"{seed} {number}"), seen).play(turns, pause)
                for number in range(agents)
            )
        )
    seen.seconds = clock.monotonic() - began
    return seen


async def by_gateway(
    agents: int = 20,
    turns: int = 6,
    pause: float = 1.0,
    *,
    slots: tuple[int, int] = (9, 13),
    flags: tuple[str, ...] = (),
    seed: int = 1,
    options: str = "",
) -> Cached:
    """The agents before a gateway in front of the two servers; `options`: more of each backend's line."""
    require_engine()
    one, other = _servers(slots, flags)
    more = dict(part.split("=") for part in options.split()) if options else {}
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(one)
            await stack.enter_async_context(other)
            lines = [backend("small", one.url, **more), backend("large", other.url, **more)]
            gateway = await stack.enter_async_context(serving(Path(folder), lines, rest="queue: {wait: 2m}"))
            return await _play(lambda: gateway.url, agents, turns, pause, seed)


async def in_turn(
    agents: int = 20,
    turns: int = 6,
    pause: float = 1.0,
    *,
    slots: tuple[int, int] = (9, 13),
    flags: tuple[str, ...] = (),
    seed: int = 1,
) -> Cached:
    """The same before a round robin."""
    require_engine()
    one, other = _servers(slots, flags)
    async with one, other:
        urls = cycle((one.url, other.url))
        return await _play(lambda: next(urls), agents, turns, pause, seed)


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser("python -m tests.real.tool_agents", description=__doc__)
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds that a tool takes, on the average")
    parser.add_argument("--slots", default="9,13", help="of the two servers")
    parser.add_argument("--cache-ram", type=int, default=0, help="MiB of host cache of each server")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--options", default="", help="of the backends: NAME=VALUE ...")
    chosen = parser.parse_args()
    first, second = map(int, chosen.slots.split(","))
    flags = ("--cache-ram", str(chosen.cache_ram))
    for name, play, more in (("kvgate", by_gateway, {"options": chosen.options}), ("round robin", in_turn, {})):
        seen = asyncio.run(
            play(  # type: ignore[operator]
                chosen.agents,
                chosen.turns,
                chosen.pause,
                slots=(first, second),
                flags=flags,
                seed=chosen.seed,
                **more,
            )
        )
        print(seen.row(name), flush=True)


if __name__ == "__main__":
    main()

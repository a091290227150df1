"""Many agents with long contexts before one real engine of two slots: what waits where, and who gets how much.

`python -m tests.real.many_agents --minutes 5` prints the table. Three keys have unlike numbers of agents, each of which
sends its conversation, longer by a turn, as soon as it has an answer; every key always has somebody waiting. What a
request took is the engine's own count of milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from gateway import clock
from gateway.local.launch import LlamaServer
from gateway.local.models import require_engine, tiny_path
from tests.real.gateway_process import GatewayProcess, backend, serving

__all__ = ["Tally", "many_agents"]

KEYS = {"crowd": 18, "team": 9, "pair": 3}
"""Agents by key."""
TURN = "The valve was opened at noon and nobody wrote down why; the pressure fell, then rose again. "
QUEUED_PREFILL = 2.0


@dataclass(slots=True)
class Tally:
    """What became of it."""

    seconds: float = 0.0
    answers: Counter[str] = field(default_factory=Counter)
    """By key."""
    milliseconds: Counter[str] = field(default_factory=Counter)
    """By key: of the engine's time, prefill and decode, since every key had somebody waiting."""
    errors: Counter[str] = field(default_factory=Counter)
    deferred: int = 0
    """The most requests that waited inside the engine at once."""
    backlog: float = 0.0
    """The most seconds of prefill that were sent and not begun, beyond the one that was let in last."""
    looks: int = 0

    @property
    def unfairness(self) -> float:
        """Between the keys: the difference of the most and the least served over the mean."""
        served = [self.milliseconds[key] for key in KEYS]
        mean = sum(served) / len(served)
        return (max(served) - min(served)) / mean if mean else float("inf")

    def table(self) -> str:
        """The figures, a line each."""
        lines: list[tuple[str, object]] = [
            ("seconds", round(self.seconds, 1)),
            *((f"{key}: {count} agents, answers", self.answers[key]) for key, count in KEYS.items()),
            *((f"{key}: seconds of the engine", round(self.milliseconds[key] / 1000, 1)) for key in KEYS),
            ("difference between keys, of the mean", f"{self.unfairness:.1%}"),
            ("errors", dict(self.errors) or 0),
            ("most requests waiting inside the engine", self.deferred),
            ("most seconds of prefill queued inside", round(self.backlog, 2)),
            ("looks at the engine", self.looks),
        ]
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name:{width}}  {value}" for name, value in lines)


async def many_agents(seconds: float, tokens: int = 4000, *, scale: float = 1.0, seed: int = 1) -> Tally:
    """Play for so long; contexts grow up to `tokens`, and `scale` of the agents take part (three at least)."""
    require_engine()
    tally = Tally()
    server = LlamaServer(tiny_path(), "tiny", context=2 * (tokens + 512), slots=2)
    keys = ", ".join(f"{{name: {name}, key: key-of-{name}-0001}}" for name in KEYS)
    rest = f"auth: {{keys: [{keys}]}}\nqueue: {{wait: 10m}}"
    with tempfile.TemporaryDirectory() as folder:
        async with (
            server,
            serving(
                Path(folder), [backend("b1", server.url, queued_prefill=f"{QUEUED_PREFILL}s")], rest=rest
            ) as gateway,
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http,
        ):
            began = clock.monotonic()
            until = began + seconds
            agents = [
                _Agent(http, gateway, key, number, tokens, random.Random(f"{seed} {key} {number}"), tally)
                for key, count in KEYS.items()
                for number in range(max(3, round(count * scale)))
            ]
            watcher = asyncio.create_task(_watch(http, server, gateway, tally))
            await asyncio.gather(*(agent.play(until) for agent in agents))
            watcher.cancel()
            with suppress(asyncio.CancelledError):
                await watcher
            tally.seconds = clock.monotonic() - began
            left = {name: value for name, value in (await gateway.idle()).items() if value}
            assert not left, left
    return tally


@dataclass(slots=True)
class _Agent:
    http: aiohttp.ClientSession
    gateway: GatewayProcess
    key: str
    number: int
    tokens: int
    chance: random.Random
    tally: Tally

    async def play(self, until: float) -> None:
        """Turn after turn, each as soon as the last was answered; a conversation that is full begins anew."""
        turns: list[dict[str, str]] = []
        headers = {"Authorization": f"Bearer key-of-{self.key}-0001"}
        while clock.monotonic() < until:
            sentences = self.chance.randint(20, 40)
            turns.append({"role": "user", "content": f"{self.key} {self.number}: " + TURN * sentences})
            if sum(len(turn["content"]) for turn in turns) / 4.5 > self.tokens - 300:
                turns = turns[-1:]
            body = {"model": "tiny", "messages": turns, "max_tokens": 24, "ignore_eos": True}
            async with self.http.post(f"{self.gateway.url}/v1/chat/completions", json=body, headers=headers) as reply:
                answer = await reply.json()
            if reply.status != 200:
                self.tally.errors[f"{reply.status} {answer['error'].get('code')}"] += 1
                await asyncio.sleep(0.5)
                continue
            if clock.monotonic() < until:  # at the end not every key has somebody waiting
                timings = answer["timings"]
                self.tally.milliseconds[self.key] += int(timings["prompt_ms"] + timings["predicted_ms"])
            self.tally.answers[self.key] += 1
            turns.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"] or "."})


async def _watch(http: aiohttp.ClientSession, server: LlamaServer, gateway: GatewayProcess, tally: Tally) -> None:
    """Note what waits inside the engine, by its own metrics and by the gateway's reckoning, until cancelled."""
    while True:
        async with http.get(f"{server.url}/metrics") as reply:
            text = await reply.text()
        for line in text.splitlines():
            if line.startswith("llamacpp:requests_deferred "):
                tally.deferred = max(tally.deferred, int(float(line.split()[1])))
        async with http.get(f"{gateway.admin}/admin/backends") as reply:
            (row,) = (await reply.json())["backends"]
        tally.backlog = max(tally.backlog, row["prefill_backlog_seconds"])
        tally.looks += 1
        await asyncio.sleep(0.25)


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser("python -m tests.real.many_agents", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--tokens", type=int, default=4000, help="of each context")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    print(asyncio.run(many_agents(60.0 * chosen.minutes, chosen.tokens, seed=chosen.seed)).table())


if __name__ == "__main__":
    main()

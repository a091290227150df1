"""Requests whose prompts end right around a window, through the gateway and straight to the engine: who refuses what.

`python -m tests.real.near_cap --requests 2000` prints the table. A wrong refusal is one of the gateway's where the
engine itself takes the prompt; a late one is an engine's refusal of what the gateway had admitted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from gateway import clock
from gateway.local.launch import LlamaServer
from gateway.local.models import require_engine, tiny_path
from tests.real.gateway_process import GatewayProcess, backend, serving

__all__ = ["Tally", "near_cap", "prompts"]

WINDOW = 1024
"""Tokens of a slot."""
AT_ONCE = 4
_KINDS = {
    "english": "The quick brown fox jumps over the lazy dog while nobody in the old harbour is watching. ",
    "german": "Die Fähre über den Fluss fährt wegen des Hochwassers vorläufig nicht, heißt es. ",
    "chinese": "模型的上下文窗口决定了一次请求能够处理多少内容。",
    "digits": "2026-11-30 20:07:33.184 0x7ffe 4096 8192 31415926535 ",
    "python": "def load(path: str) -> dict[str, int]:\n    return {k: int(v) for k, v in read(path)}\n",
    "json": '{"id": 4711, "name": "valve-17", "state": [true, false, null], "p": 1.25e-3}\n',
    "dashes": "-" * 64 + "\n",
    "emoji": "🙂🚀✅ ",
}
_PATHS = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
}
_COUNTER = re.compile(r"^kvgate_(exact_counts|backend_failures)_total\{([^}]*)\} (\S+)$", re.MULTILINE)
_SHARES = (("chat", 60), ("completions", 20), ("messages", 10), ("responses", 10))


@dataclass(slots=True)
class Tally:
    """What became of the requests."""

    requests: int = 0
    served: int = 0
    refused: int = 0
    wrongly_refused: list[str] = field(default_factory=list)
    refused_late: int = 0
    odd: list[str] = field(default_factory=list)
    uncounted: Counter[str] = field(default_factory=Counter)
    """Refusals that do not speak of a count, by kind of text and surface."""
    near: int = 0
    """Prompts within 5 % of the window, by the engine's count."""
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    """Exact counts of the gateway, by who counted and what came of it."""

    def table(self) -> str:
        """The figures, a line each."""
        lines = [
            ("requests", self.requests),
            ("prompts within 5 % of the window", self.near),
            ("served", self.served),
            ("refused for length by the gateway", self.refused),
            ("  of these wrongly: the engine takes them", len(self.wrongly_refused)),
            ("admitted, then refused for length by the engine", self.refused_late),
            ("other answers", len(self.odd)),
            *((f"refused without a count: {name}", count) for name, count in sorted(self.uncounted.items())),
            *((f"counts: {name}", count) for name, count in sorted(self.counts.items())),
            ("seconds", round(self.seconds, 1)),
        ]
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name:{width}}  {count}" for name, count in lines)


def prompts(
    count: int, density: Mapping[str, float], template: int, seed: int = 1
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(kind, surface, body) of many prompts, two of three right at the window, the others from half to double of it.

    `density`: characters a token, by kind of text; `template`: tokens that a message is wrapped in. Both only to aim.
    """
    dice = random.Random(seed)
    kinds, surfaces = list(_KINDS), [name for name, share in _SHARES for _ in range(share)]
    for index in range(count):
        kind, surface = kinds[index % len(kinds)], dice.choice(surfaces)
        text = _KINDS[kind]
        aim = WINDOW * (dice.gauss(1.0, 0.012) if index % 3 else dice.uniform(0.5, 2.0))
        wrapped = 0 if surface == "completions" else template
        characters = max(1, round((aim - wrapped) * density[kind]))
        start = dice.randrange(len(text))
        filled = f"{index} " + (text * (characters // len(text) + 2))[start : start + characters]
        if surface == "completions":
            yield kind, surface, {"prompt": filled, "max_tokens": 1}
        elif surface == "responses":
            yield kind, surface, {"input": filled, "max_output_tokens": 1}
        else:
            yield kind, surface, {"messages": [{"role": "user", "content": filled}], "max_tokens": 1}


async def near_cap(gateway: GatewayProcess, engine: LlamaServer, count: int, seed: int = 1) -> Tally:
    """Send so many requests through the gateway; ask the engine itself about each that was refused."""
    tally, places, started = Tally(), asyncio.Semaphore(AT_ONCE), clock.monotonic()

    async def one(http: aiohttp.ClientSession, kind: str, surface: str, body: dict[str, Any]) -> None:
        asked = {**body, "model": "tiny"}
        async with places, http.post(gateway.url + _PATHS[surface], json=asked) as reply:
            status, answer = reply.status, await reply.json()
        tally.requests += 1
        if status == 200:
            tally.served += 1
            tally.near += abs(_told(answer) - WINDOW) <= WINDOW // 20
            return
        refusal = json.dumps(answer)[:300]
        if status != 400 or "maximum context length" not in refusal:
            tally.odd.append(f"{kind}, {surface}: {status} {refusal}")
            return
        tally.refused += 1
        if "(counted)" not in refusal:
            tally.uncounted[f"{kind}, {surface}"] += 1
        async with places, http.post(engine.url + _PATHS[surface], json=asked) as reply:
            taken, direct = reply.status == 200, await reply.json()
        real = _told(direct) if taken else direct["error"]["n_prompt_tokens"]
        tally.near += abs(real - WINDOW) <= WINDOW // 20
        if taken:
            tally.wrongly_refused.append(f"{kind}, {surface}, {real} tokens: {refusal}")

    async with aiohttp.ClientSession() as http:
        density, template = await _aim(http, engine)
        async with asyncio.TaskGroup() as group:
            for each in prompts(count, density, template, seed):
                group.create_task(one(http, *each))
    tally.seconds = clock.monotonic() - started
    found = _COUNTER.findall(await gateway.metrics())
    tally.counts.update({labels: int(float(value)) for name, labels, value in found if name == "exact_counts"})
    tally.refused_late = sum(
        int(float(value)) for name, labels, value in found if name == "backend_failures" and 'kind="context"' in labels
    )
    tally.refused -= tally.refused_late
    return tally


def _told(answer: dict[str, Any]) -> int:
    """The prompt's tokens in an answer on any surface; Anthropic's leave out what was cached."""
    usage = answer["usage"]
    return int(usage.get("prompt_tokens") or usage["input_tokens"] + usage.get("cache_read_input_tokens", 0))


async def _aim(http: aiohttp.ClientSession, engine: LlamaServer) -> tuple[dict[str, float], int]:
    density = {}
    for kind, text in _KINDS.items():
        sample = text * (4096 // len(text))
        async with http.post(engine.url + "/tokenize", json={"content": sample}) as reply:
            density[kind] = len(sample) / len((await reply.json())["tokens"])
    empty = {"messages": [{"role": "user", "content": ""}]}
    async with http.post(engine.url + "/v1/chat/completions/input_tokens", json=empty) as reply:
        return density, (await reply.json())["input_tokens"]


async def _main(requests: int, seed: int) -> Tally:
    require_engine()
    with tempfile.TemporaryDirectory() as folder:
        async with (
            LlamaServer(tiny_path(), "tiny", context=2 * WINDOW, slots=2) as engine,
            serving(Path(folder), [backend("near", engine.url)]) as gateway,
        ):
            return await near_cap(gateway, engine, requests, seed)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    tally = asyncio.run(_main(given.requests, given.seed))
    print(tally.table())
    for line in (*tally.wrongly_refused, *tally.odd):
        print(" ", line)


if __name__ == "__main__":
    main()

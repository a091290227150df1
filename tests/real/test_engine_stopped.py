"""One of three engines stops (it accepts and is silent), goes on, is killed and comes back late: no client sees it."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import aiohttp
import pytest

from gateway import clock
from gateway.local.launch import LlamaServer
from tests.real.conftest import Launch
from tests.real.gateway_process import GatewayProcess, backend, serving
from tests.real.test_going_on import QUESTIONS, Seen, _stream

REST = """models: [{name: smol, serves: smol, continuation: true}]
health: {probe: 1s, canary: true, breaker: {failures: 2, open: 2s}}
retry: {budget: 1.0, attempts: 3}"""
LIMITS = "{first_token: 4s, token_gap: 1500ms, connect: 1s}"
LATE_S = 2.0
TOKENS = 30


async def _views(gateway: GatewayProcess) -> dict[str, dict[str, object]]:
    return {view["name"]: view for view in (await gateway.admin_json("/admin/backends"))["backends"]}


async def _until(gateway: GatewayProcess, name: str, *healths: str, within: float = 30.0) -> None:
    deadline = clock.monotonic() + within
    while (found := (await _views(gateway))[name]["health"]) not in healths:
        assert clock.monotonic() < deadline, f"{name} is {found}, not {healths}, after {within} s"
        await asyncio.sleep(0.05)


def _whole(seen: list[Seen]) -> None:
    for one in seen:
        assert (one.error, one.done) == (None, True), one
        assert (len(one.ids), one.roles) == (1, 1), one


@pytest.mark.slow
@pytest.mark.timeout(200)
async def test_a_stopped_engine_and_one_that_restarts_slowly_cost_no_client_its_answer(
    llama: Launch, smollm2: Path, tmp_path: Path
) -> None:
    servers = {name: await llama("smol", model=smollm2, context=6144, slots=3) for name in ("east", "west", "north")}
    lines = [backend(name, server.url, timeouts=LIMITS) for name, server in servers.items()]
    async with serving(tmp_path, lines, rest=REST) as gateway, aiohttp.ClientSession() as http:

        def ask(thing: str, seen: list[Seen]) -> list[asyncio.Task[Seen]]:
            questions = [QUESTIONS[number % len(QUESTIONS)].format(thing) for number in range(len(seen))]
            return [
                asyncio.create_task(_stream(http, gateway.url, *each, max_tokens=TOKENS))
                for each in zip(questions, seen, strict=True)
            ]

        async def busiest() -> str:
            views = await _views(gateway)
            return max(views, key=lambda name: int(str(views[name]["running"])))

        begun, begins = [Seen() for _ in range(6)], [Seen() for _ in range(3)]
        tasks = ask("ship", begun)
        await asyncio.wait_for(asyncio.gather(*(each.came.wait() for each in begun)), 60)
        victim = await busiest()
        stopped: LlamaServer = servers[victim]
        os.kill(stopped.pid, signal.SIGSTOP)
        try:
            tasks += ask("river", begins)  # some of them are sent there before anybody can know
            await asyncio.gather(*tasks)
            _whole(begun + begins)
            assert sum(each.continued for each in begun) >= 1
            await _until(gateway, victim, "open", "down")
            later = [Seen() for _ in range(3)]
            began = clock.monotonic()
            await asyncio.gather(*ask("lamp", later))
            _whole(later)
            assert not any(each.continued for each in later)
            print(f"\nthree answers beside the stopped engine took {clock.monotonic() - began:.1f} s")
        finally:
            os.kill(stopped.pid, signal.SIGCONT)
        await _until(gateway, victim, "up", "trial")

        begun, begins = [Seen() for _ in range(6)], [Seen() for _ in range(3)]
        tasks = ask("garden", begun)
        await asyncio.wait_for(asyncio.gather(*(each.came.wait() for each in begun)), 60)
        victim = await busiest()
        await servers[victim].kill()
        tasks += ask("train", begins)
        await asyncio.sleep(LATE_S)
        await servers[victim].start(wait=False)
        await asyncio.gather(*tasks)
        _whole(begun + begins)
        await _until(gateway, victim, "up", "trial")
        assert not any((await gateway.idle()).values())

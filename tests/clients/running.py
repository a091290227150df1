"""Run one client once, and hold it to what it should have done."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from gateway import clock
from tests.clients.client import Client, Room
from tests.clients.engine.script import CONTENT, DONE, FILE, NOTES, Step
from tests.clients.scripted_engine import Asked
from tests.clients.setups import Reached

__all__ = ["Outcome", "run"]

ROUNDS = 3
"""Requests that the task takes: write; read and note; say so."""


@dataclass(slots=True)
class Outcome:
    """What came of it. `faults` is empty when all was right. seconds: wall time of the client's process."""

    client: str
    setup: str
    seconds: float = 0.0
    status: int | None = None
    surfaces: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    output: str = ""

    @property
    def passed(self) -> bool:
        return not self.faults


async def run(client: Client, at: Reached, folder: Path) -> Outcome:
    """Let `client` do its task there; `folder` is new, and takes its home and its work. Raises NotInstalled."""
    engine = at.engine
    room = Room(folder / "home", folder / "work", at.base, client.packages())
    await asyncio.to_thread(_lay_out, room)
    asked, refused, lines = len(engine.asked), len(engine.refused), len(at.log_lines())
    outcome = Outcome(client.name, at.setup)
    await _process(client, room, outcome)
    await asyncio.sleep(0.2)  # the last line of the access log
    news = engine.asked[asked:]
    outcome.surfaces.update(each.surface for each in news)
    outcome.faults += _files(client, room.work)
    outcome.faults += _requests(client, news, at.spoken(client))
    outcome.faults += [f"the engine refused: {each}" for each in engine.refused[refused:]]
    outcome.faults += [told for line in at.log_lines()[lines:] if (told := _complaint(line))]
    if client.reports and outcome.status == 0:
        outcome.faults += _reports(client, outcome.output)
    return outcome


def _lay_out(room: Room) -> None:
    room.home.mkdir(parents=True)
    room.work.mkdir()


async def _process(client: Client, room: Room, outcome: Outcome) -> None:
    command = client.prepare(room)
    # Nothing but loopback is wanted: what tries to get out meets a closed port at once.
    nowhere = "http://127.0.0.1:9"
    environment = {
        "HOME": str(room.home),
        "PATH": os.environ["PATH"],
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_COLOR": "1",
        "CI": "1",
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
        "NO_PROXY": "127.0.0.1,localhost",
        "GIT_CONFIG_NOSYSTEM": "1",
        **{
            f"GIT_{role}_{what}": f"{what.lower()}@localhost"
            for role in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
        **command.env,
    }
    started = clock.monotonic()
    process = await asyncio.create_subprocess_exec(
        *command.argv,
        cwd=room.work,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        said = await asyncio.wait_for(process.stdout.read(), client.seconds)
        outcome.output = said.decode(errors="replace")
        outcome.status = await asyncio.wait_for(process.wait(), 10)
        if outcome.status:
            outcome.faults.append(f"it ended with status {outcome.status}")
    except TimeoutError:
        outcome.faults.append(f"it was not done after {client.seconds:.0f} s")
    finally:
        outcome.seconds = clock.monotonic() - started
        with contextlib.suppress(ProcessLookupError):  # its own children, should it have left any
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _files(client: Client, work: Path) -> list[str]:
    faults = []
    for way in client.ways:
        for name, wanted in ((FILE, CONTENT), *(() if client.edits else ((NOTES, "read"),))):
            file = work / way / name
            found = file.read_text() if file.exists() else None
            if found is None or found.strip() != wanted:
                faults.append(f"{way}/{name}: {'is not there' if found is None else repr(found[:80])}")
    return faults


def _requests(client: Client, asked: list[Asked], spoken: frozenset[str]) -> list[str]:
    faults = [f"asked on {each.surface}, which is not its own" for each in asked if each.surface not in spoken]
    faults += [f"{each.surface}: {what}" for each in asked for what in each.complaints]
    faults += [f"{each.surface}: calls {each.turn.open_calls} have no result" for each in asked if each.turn.open_calls]
    task = [each for each in asked if each.turn.offers]
    side = len(asked) - len(task)
    if client.edits:
        side, wanted = side - 1, Counter[int]()
    else:
        wanted = Counter({number: len(client.ways) for number in range(ROUNDS)})
        for each in task:
            if each.turn.rounds == ROUNDS - 1 and not any(CONTENT in result for result in each.turn.results):
                faults.append(f"{each.surface}: what was read did not reach the engine: {each.turn.results}")
    faults += [f"round {after.turn.rounds} does not begin as the one before did" for before, after in _grown(task)]
    found = Counter(each.turn.rounds for each in task)
    if found != wanted:
        faults.append(f"requests by round: {dict(sorted(found.items()))} instead of {dict(wanted)}")
    if not 0 <= side <= client.side:
        faults.append(f"{side} requests beside the task, {client.side} at most were expected")
    return faults


def _grown(task: list[Asked]) -> Iterator[tuple[Asked, Asked]]:
    """Turns on chat whose prompt is not the one before and more: the engine could not reuse its cache for them."""
    for before, after in pairwise(task):
        if after.surface == "chat" and after.turn.rounds == before.turn.rounds + 1:
            old, new = before.body["messages"], after.body["messages"]
            if new[: len(old)] != old or before.body["tools"] != after.body["tools"]:
                yield before, after


def _reports(client: Client, output: str) -> list[str]:
    step = Step()
    told = {
        line["way"]: line for line in map(json.loads, filter(lambda text: text.startswith("{"), output.splitlines()))
    }
    wanted = {"text": DONE, "input": step.prompt_tokens, "output": step.output_tokens}
    return [
        f"{way}: got {told.get(way)}, expected {wanted}"
        for way in client.ways
        if told.get(way, {}) != {"way": way, **wanted}
    ]


def _complaint(line: dict[str, Any]) -> str:
    """What is wrong in a line of the gateway's log, or nothing."""
    if line.get("event") != "request":
        return f"log: {line.get('message')}" if line["level"] in ("error", "critical") else ""
    if line["status"] < 400 and line["outcome"] == "completed":
        return ""
    return "access log: " + ", ".join(f"{name} {line.get(name)}" for name in ("route", "status", "outcome", "reason"))

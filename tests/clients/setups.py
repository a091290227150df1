"""The ways a client can reach the scripted engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.agents import AIDER_REPLIES
from tests.clients.client import Client
from tests.clients.engine.script import Script
from tests.clients.scripted_engine import MODEL, SMALL, ScriptedEngine
from tests.real.gateway_process import backend, serving

__all__ = ["SETUPS", "Reached", "reach"]

SETUPS = {
    "direct": "no gateway, the engine speaks the client's surface",
    "passed through": "the gateway before an engine that speaks the client's surface",
    "translated": "the gateway before an engine that has only chat completions",
    "from messages": "the gateway before a hosted service that has only Anthropic's messages",
}
"""By name, with what it is."""


@dataclass(frozen=True, slots=True)
class Reached:
    """An engine, and the base URL under which clients reach it."""

    setup: str
    base: str
    engine: ScriptedEngine
    log: Path | None = None

    def spoken(self, client: Client) -> frozenset[str]:
        """The surfaces on which the engine must have been asked."""
        only = {"translated": frozenset({"chat", "completions"}), "from messages": frozenset({"messages"})}
        passed = client.surfaces if self.setup == "direct" or client.asked_in is None else client.asked_in
        return only.get(self.setup, passed)

    def log_lines(self) -> list[dict[str, Any]]:
        """The lines of the gateway's log so far."""
        if self.log is None:
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]


def flavour(setup: str, client: Client) -> str:
    """Which engine a client meets in a set-up."""
    return {"translated": "openai", "from messages": "anthropic"}.get(setup, client.flavour)


@asynccontextmanager
async def reach(
    setup: str, flavour: str, folder: Path, *, models: tuple[str, ...] = (MODEL, SMALL)
) -> AsyncIterator[Reached]:
    """An engine of that flavour, behind a gateway of its own process or not; `folder` takes its files."""
    async with ScriptedEngine(flavour, Script(AIDER_REPLIES), models) as engine:
        if setup == "direct":
            yield Reached(setup, engine.url, engine)
            return
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        rest = "telemetry: {log: {level: info, format: json}}"
        line = backend("scripted", engine.url, engine=flavour, device="rtx-pro-6000")
        async with serving(folder, [line], rest=rest) as gateway:
            yield Reached(setup, gateway.url, engine, gateway.log)

"""Each client does its task through a gateway, on an engine of its own tongue and on one that only knows chat.

The Python SDKs run wherever the interpreter has them. The rest is marked `clients` and runs where it is installed:
`python -m tests.clients --install` brings it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from _pytest.mark import ParameterSet

from tests.clients.__main__ import CLIENTS
from tests.clients.client import Client
from tests.clients.running import run
from tests.clients.setups import SETUPS, Reached, flavour, reach

Reach = Callable[[str, str], Awaitable[Reached]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def reached(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Reach]:
    """One gateway for each set-up and flavour of engine, started when first asked for."""
    running: dict[tuple[str, str], Reached] = {}
    async with AsyncExitStack() as stack:

        async def start(setup: str, kind: str) -> Reached:
            if (setup, kind) not in running:
                folder = tmp_path_factory.mktemp("gateway")
                running[setup, kind] = await stack.enter_async_context(reach(setup, kind, folder))
            return running[setup, kind]

        yield start


def _cases() -> list[ParameterSet]:
    marked = [(client, () if client.module else (pytest.mark.clients,)) for client in CLIENTS]
    return [
        pytest.param(client, setup, id=f"{client.name} {setup}".replace(" ", "-"), marks=marks)
        for client, marks in marked
        for setup in SETUPS
        if setup != "direct"
    ]


@pytest.mark.parametrize(("client", "setup"), _cases())
@pytest.mark.asyncio(loop_scope="module")
async def test_a_client_does_its_task(client: Client, setup: str, reached: Reach, tmp_path: Path) -> None:
    if not client.there():
        pytest.skip(f"{client.name} is not installed")
    at = await reached(setup, flavour(setup, client))
    outcome = await run(client, at, tmp_path / "client")
    assert outcome.passed, "\n".join([*outcome.faults, outcome.output[-2000:]])

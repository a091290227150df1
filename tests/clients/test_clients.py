"""Each client does its task through a gateway, on an engine of its own tongue and on one that only knows chat.

The Python SDKs run wherever the interpreter has them. The rest is marked `clients` and runs where it is installed:
`python -m tests.clients --install` brings it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.clients.__main__ import CLIENTS
from tests.clients.client import Client
from tests.clients.conftest import Reach
from tests.clients.running import run
from tests.clients.setups import SETUPS, flavour


def _cases() -> list[ParameterSet]:
    marked = [(client, () if client.module else (pytest.mark.clients,)) for client in CLIENTS]
    return [
        pytest.param(client, setup, id=f"{client.name} {setup}".replace(" ", "-"), marks=marks)
        for client, marks in marked
        for setup in SETUPS
        if setup != "direct"
    ]


@pytest.mark.parametrize(("client", "setup"), _cases())
@pytest.mark.asyncio(loop_scope="session")
async def test_a_client_does_its_task(client: Client, setup: str, reached: Reach, tmp_path: Path) -> None:
    if not client.there():
        pytest.skip(f"{client.name} is not installed")
    at = await reached(setup, flavour(setup, client))
    outcome = await run(client, at, tmp_path / "client")
    assert outcome.passed, "\n".join([*outcome.faults, outcome.output[-2000:]])

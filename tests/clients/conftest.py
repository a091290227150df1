"""One gateway for each set-up and flavour of engine, for all tests here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from tests.clients.captures import captures, load
from tests.clients.replay import models_of
from tests.clients.scripted_engine import MODEL, SMALL
from tests.clients.setups import Reached, reach

Reach = Callable[[str, str], Awaitable[Reached]]
"""`await reached(setup, flavour)`."""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def reached(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Reach]:
    """Starts what a test asks for, once."""
    running: dict[tuple[str, str], Reached] = {}
    captured = [name for file in captures() for name in models_of(load(file))]
    models = tuple(dict.fromkeys((MODEL, SMALL, *captured)))
    async with AsyncExitStack() as stack:

        async def start(setup: str, kind: str) -> Reached:
            if (setup, kind) not in running:
                folder = tmp_path_factory.mktemp("gateway")
                running[setup, kind] = await stack.enter_async_context(reach(setup, kind, folder, models=models))
            return running[setup, kind]

        yield start

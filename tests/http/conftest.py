from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from tests.shell.fixtures import start, unblocked

__all__ = ["start", "unblocked"]


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """What is served in production runs on uvloop, so these tests do."""
    return {"uvloop": uvloop.new_event_loop}

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop

pytest.register_assert_rewrite("tests.shell.fixtures", "tests.shell.running")

from tests.shell.fixtures import start, unblocked  # noqa: E402

__all__ = ["start", "unblocked"]


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """What is served in production runs on uvloop, so these tests do."""
    return {"uvloop": uvloop.new_event_loop}

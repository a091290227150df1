"""Real llama.cpp servers on loopback ports: with a tiny random model for speed, or with SmolLM2 for real words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol

import pytest
import pytest_asyncio

from gateway.local.launch import LlamaServer
from gateway.local.models import require_engine, require_smollm2, tiny_path

TOOLS_TEMPLATE = Path(__file__).with_name("tools.jinja")
"""A chat template with tools, for `flags=("--chat-template-file", str(TOOLS_TEMPLATE))`; SmolLM2's own has none."""


class Launch(Protocol):
    """Starts one more server that ends with the test."""

    def __call__(
        self,
        alias: str = "tiny",
        *,
        model: Path | None = None,
        context: int = 4096,
        slots: int = 2,
        threads: int = 1,
        port: int = 0,
        flags: tuple[str, ...] = (),
    ) -> Awaitable[LlamaServer]: ...


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.real)


@pytest.fixture(scope="session")
def tiny_model() -> Path:
    """The GGUF of the tiny random model, made once a machine; fails with the pip line when a wheel is missing."""
    require_engine()
    return tiny_path()


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The GGUF of SmolLM2-135M-Instruct."""
    require_engine()
    return require_smollm2()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def two_llamas(tiny_model: Path) -> AsyncIterator[tuple[LlamaServer, LlamaServer]]:
    """Two unlike servers for the whole session: 4096 tokens a slot, and 2048. Tests must not kill them."""
    large = LlamaServer(tiny_model, "large", context=8192, slots=2)
    small = LlamaServer(tiny_model, "small", context=4096, slots=2)
    async with large, small:
        yield large, small


@pytest_asyncio.fixture
async def llama(tiny_model: Path) -> AsyncIterator[Launch]:
    """A factory of servers that a test may kill: `server = await llama("alias", context=2048, slots=1)`."""
    async with AsyncExitStack() as stack:

        async def launch(alias: str = "tiny", *, model: Path | None = None, **options: object) -> LlamaServer:
            server = LlamaServer(model or tiny_model, alias, **options)  # type: ignore[arg-type]
            return await stack.enter_async_context(server)

        yield launch

"""Which surfaces a real llama.cpp server is found to have, and that finding out starts nothing in it."""

from __future__ import annotations

from gateway.engines.adapter import Facts
from gateway.engines.llama_cpp import LlamaCpp
from gateway.fleet.discovery import discover
from gateway.fleet.probing import Prober, Target
from tests.real.conftest import Launch

TEXT = {"chat", "completions", "responses", "messages", "count_tokens", "tokenize", "detokenize"}


async def found(url: str) -> tuple[Facts, float | None]:
    adapter, prober = LlamaCpp(), Prober()
    try:
        target = Target("b", url)
        facts = adapter.facts(await discover(prober, target, adapter, 10.0))
        load = adapter.load(await prober.ask(target, adapter.loading, 10.0))
    finally:
        await prober.close()
    return facts, load.tokens_generated


async def test_a_text_server(llama: Launch) -> None:
    server = await llama()
    facts, generated = await found(server.url)
    assert facts.surfaces is not None
    assert facts.surfaces >= TEXT
    assert not facts.surfaces & {"embeddings", "rerank"}
    assert generated in (None, 0.0)


async def test_a_server_with_embeddings(llama: Launch) -> None:
    server = await llama(flags=("--embeddings",))
    facts, _ = await found(server.url)
    assert facts.surfaces is not None
    assert facts.surfaces >= TEXT | {"embeddings"}
    assert "rerank" not in facts.surfaces

from __future__ import annotations

from pathlib import Path

from gateway.engines.offering import How, markdown, offering
from gateway.engines.registry import ENGINES
from gateway.wire.translations import SPOKEN

DOCUMENT = Path(__file__).parents[2] / "docs" / "surfaces.md"


def cells(surface: str) -> dict[str, How]:
    return next(dict(row.cells) for row in offering(SPOKEN) if row.surface == surface)


def test_every_engine_serves_what_agents_speak() -> None:
    for surface in ("chat", "messages", "responses", "ollama_chat"):
        assert list(cells(surface)) == list(ENGINES)
        assert How.NOT_OFFERED not in cells(surface).values()


def test_how() -> None:
    assert cells("chat")["anthropic"] is How.TRANSLATED
    assert cells("messages")["anthropic"] is How.NATIVE
    assert cells("messages")["openai"] is How.IF_FOUND_ELSE_TRANSLATED
    assert cells("embeddings")["llama.cpp"] is How.IF_FOUND
    assert cells("embeddings")["dwarfstar"] is How.NOT_OFFERED
    assert cells("ollama_embed")["ollama"] is How.NATIVE
    assert cells("ollama_embed")["vllm"] is How.TRANSLATED_IF_FOUND
    assert cells("completions")["ninfer"] is How.NOT_OFFERED


def test_nothing_is_translated_that_no_translation_is_there_for() -> None:
    assert not [
        row for row in offering({}) if {how for _, how in row.cells} & {How.TRANSLATED, How.TRANSLATED_IF_FOUND}
    ]


def test_the_document_is_what_the_code_says() -> None:
    """If this fails: python -m tests.engines.write_surfaces."""
    assert DOCUMENT.read_text().endswith("\n" + markdown(SPOKEN))

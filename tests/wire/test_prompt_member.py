"""A prompt that is too long is told under the name that the client gave it."""

from __future__ import annotations

import pytest

from gateway.wire.refusal import prompt_member
from gateway.wire.surfaces import SURFACES


@pytest.mark.parametrize(
    ("surface", "member"),
    [
        ("chat", "messages"),
        ("messages", "messages"),
        ("count_tokens", "messages"),
        ("ollama_chat", "messages"),
        ("completions", "prompt"),
        ("ollama_generate", "prompt"),
        ("responses", "input"),
        ("embeddings", "input"),
        ("ollama_embed", "input"),
        ("rerank", "documents"),
    ],
)
def test_the_member_at_fault(surface: str, member: str) -> None:
    assert SURFACES[surface].prompt == prompt_member(surface) == member

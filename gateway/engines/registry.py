"""The engines by the names that a configuration uses."""

from __future__ import annotations

from gateway.engines.adapter import Engine
from gateway.engines.llama_cpp import LlamaCpp
from gateway.engines.openai_compatible import OpenAiCompatible
from gateway.engines.vllm import Vllm

__all__ = ["ENGINES", "engine"]

ENGINES: dict[str, Engine] = {adapter.name: adapter for adapter in (LlamaCpp(), Vllm(), OpenAiCompatible())}
"""Every adapter by name. Adapters hold no state, so one of each is enough."""


def engine(name: str) -> Engine:
    """The adapter called `name`. Raises KeyError for one that there is not."""
    return ENGINES[name]

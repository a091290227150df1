"""The engines by the names that a configuration uses."""

from __future__ import annotations

from gateway.engines.adapter import Engine
from gateway.engines.anthropic import Anthropic
from gateway.engines.dwarfstar import DwarfStar
from gateway.engines.llama_cpp import LlamaCpp
from gateway.engines.ninfer import Ninfer
from gateway.engines.ollama import Ollama
from gateway.engines.openai_compatible import OpenAiCompatible
from gateway.engines.sglang import SgLang
from gateway.engines.vllm import Vllm

__all__ = ["ENGINES", "engine"]

_ALL: tuple[Engine, ...] = (
    Vllm(),
    SgLang(),
    LlamaCpp(),
    Ollama(),
    DwarfStar(),
    Ninfer(),
    OpenAiCompatible(),
    Anthropic(),
)
ENGINES: dict[str, Engine] = {adapter.name: adapter for adapter in _ALL}
"""Every adapter by name, in the order in which they are listed to people. They hold no state: one of each is enough."""


def engine(name: str) -> Engine:
    """The adapter called `name`. Raises KeyError for one that there is not."""
    return ENGINES[name]

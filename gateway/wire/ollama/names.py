"""Names of models as Ollama's clients write them."""

from __future__ import annotations

__all__ = ["plain"]

_LATEST = ":latest"
_HOMES = ("registry.ollama.ai/library/", "registry.ollama.ai/", "library/")
"""What Ollama puts before a name that has no host and no namespace (types/model/name.go)."""


def plain(name: str) -> str:
    """The name without what Ollama takes for granted: `Qwen:latest` is `Qwen`, `library/qwen:4b` is `qwen:4b`.

    Two names for one model are equal when these are. A name that is nothing but that stays.
    """
    short = name
    for home in _HOMES:
        if short.startswith(home):
            short = short[len(home) :]
            break
    if short[-len(_LATEST) :].lower() == _LATEST:
        short = short[: -len(_LATEST)]
    return short or name

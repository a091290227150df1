"""Which layers of a GGUF model have a sliding window: llama.cpp's rule for each architecture (src/models, b11434)."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.core.kv.described import ModelFileError
from gateway.core.kv.gguf.keys import GgufKeys

__all__ = ["Windows", "windows_of"]


@dataclass(frozen=True, slots=True)
class Windows:
    """`sliding`: for each layer, whether it has a window of `size` tokens. `chunked`: windows are whole chunks.

    `ignored`: the file has a window, but llama.cpp doesn't use it for this architecture.
    """

    sliding: tuple[bool, ...]
    size: int = 0
    chunked: bool = False
    ignored: bool = False


@dataclass(frozen=True, slots=True)
class _Rule:
    """`every`: one layer in so many is full, the last (or the first, if `full_first`); 0: only a list tells.

    `size`: the window where the file has none; `fixed`: it always is that.
    """

    every: int
    full_first: bool = False
    size: int = 0
    fixed: bool = False


_RULES = {
    "afmoe": _Rule(4),
    "cohere2": _Rule(4),
    "cohere2moe": _Rule(4, full_first=True),
    "exaone-moe": _Rule(4, size=128),
    "exaone4": _Rule(4, size=4096),
    "gemma2": _Rule(2, size=4096),
    "gemma3": _Rule(6),
    "gemma3n": _Rule(5),
    "gemma4": _Rule(0),
    "gpt-oss": _Rule(2),
    "granite_swa": _Rule(0),
    "laguna": _Rule(4, full_first=True),
    "llama4": _Rule(4, size=8192, fixed=True),
    "maple": _Rule(0),
    "mellum": _Rule(4),
    "mimo2": _Rule(0),
    "muse-glimmer": _Rule(4),
    "olmo2": _Rule(4),
    "plamo3": _Rule(8),
    "smallthinker": _Rule(4, full_first=True, size=4096, fixed=True),
    "spark2_5": _Rule(0),
    "step35": _Rule(0),
}
_ALL_ATTENTION = ("lfm2", "lfm2moe")
"""Every attention layer has the window, if the file has one."""
_SILENT_IS_NONE = ("smallthinker",)
"""Without the key there is no window, though the architecture has one."""
_WINDOWED_EXAONE = 64
"""Layers of the one EXAONE 4 with windows, the 32B."""


def windows_of(keys: GgufKeys, layers: int) -> Windows:
    """The rule of this architecture on this file. Raises ModelFileError where a list that must be there is not."""
    stated = keys.whole("attention.sliding_window", default=0)
    absent = keys.get("attention.sliding_window") is None
    nowhere = Windows((False,) * layers)
    if keys.arch in _ALL_ATTENTION:
        return Windows((True,) * layers, stated) if stated else nowhere
    rule = _RULES.get(keys.arch)
    if rule is None:
        return Windows((False,) * layers, ignored=stated > 0)
    if keys.arch == "exaone4" and layers != _WINDOWED_EXAONE:
        return nowhere
    size = rule.size if rule.fixed else stated or rule.size
    off = (stated == 0 and not absent) or (absent and (not rule.size or keys.arch in _SILENT_IS_NONE))
    if off:
        return nowhere
    listed = keys.flags("attention.sliding_window_pattern", layers)
    if listed is None:
        every = keys.whole("attention.sliding_window_pattern", default=rule.every)
        if not every and not rule.every:
            raise ModelFileError(f"{keys.spelled('attention.sliding_window_pattern')} is missing")
        listed = tuple(_slides(layer, every, rule.full_first) for layer in range(layers))
    return Windows(listed, size, chunked=keys.arch == "llama4")


def _slides(layer: int, every: int, full_first: bool) -> bool:
    if not every:
        return True
    return layer % every != 0 if full_first else layer % every < every - 1

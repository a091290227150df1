"""What an engine calls a model, and what it is: organisation, number format and packaging taken off."""

from __future__ import annotations

import re

__all__ = ["loose_name", "plain_name", "weights_in_name"]

_FORMATS = {
    "fp8": r"fp8(?:[-_]dynamic|[-_]block)?|f8|w8a8[-_]?fp8",
    "int8": r"w8a8(?:[-_]int8)?|int8|8bit",
    "awq": r"awq(?:[-_]?(?:int)?4(?:bit)?)?",
    "gptq": r"gptq(?:[-_]?int[48])?",
    "int4": r"w4a16|int4|4bit",
    "nvfp4": r"nvfp4|fp4",
    "mxfp4": r"mxfp4(?:[-_]moe)?",
    "bf16": r"bf16",
    "fp16": r"fp16|f16",
    "q8_0": r"(?:ud-)?q8(?:_0|_k_xl)?",
    "q6_k": r"(?:ud-)?q6_k(?:_[a-z]+)?",
    "q5_k_m": r"(?:ud-)?q5_(?:k(?:_[a-z]+)?|[01])",
    "q4_k_m": r"(?:ud-)?q4_k(?:_[a-z]+)?",
    "q4_0": r"(?:ud-)?q4_[01]",
    "iq4_xs": r"(?:ud-)?iq4_(?:xs|nl)",
    "q3_k_m": r"(?:ud-)?i?q3_[a-z_]+",
    "q2_k": r"(?:ud-)?i?q2_[a-z_]+",
}
_SUFFIX = re.compile(
    r"[-._@:](?:(?P<format>"
    + "|".join(_FORMATS.values())
    + r")|gguf|mlx|instruct|chat|it|latest|hf|fast|\d{5}-of-\d{5})$"
)


def _strip(name: str) -> tuple[str, str]:
    """(the bare name, the number format its suffix names or ""): `Qwen/Qwen3.6-27B-FP8` is `qwen3.6-27b`, `fp8`."""
    bare = name.strip().replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].casefold()
    bare, found = bare.removesuffix(".gguf"), ""
    while match := _SUFFIX.search(bare):
        if text := match["format"]:
            found = next(kind for kind, pattern in _FORMATS.items() if re.fullmatch(pattern, text))
        bare = bare[: match.start()]
    return bare, found


def plain_name(name: str) -> str:
    """A model's name without organisation, path, number format and packaging, in lower case."""
    return _strip(name)[0]


def weights_in_name(name: str) -> str | None:
    """The number format that an engine's name for a model tells (`-FP8`, `-AWQ`, `Q4_K_M`), or None."""
    return _strip(name)[1] or None


def loose_name(name: str) -> str:
    """Letters and digits only, without a maker's prefix that some publishers add (`nvidia-`, `meta-`)."""
    return re.sub(r"^(?:nvidia|meta|mistralai|google|openai)|[^a-z0-9]", "", name.replace("_", "-").replace(" ", "-"))

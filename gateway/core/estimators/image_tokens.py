"""How many tokens a model family makes of a picture of so many pixels, before anything is learned.

From the families' own processor configurations and papers, each named beside its rule; hosted APIs from their pricing
pages. What a template puts around a picture (2 to 4 tokens) is counted where it is always the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, sqrt
from typing import TypeAlias

from gateway.core.media import Picture

__all__ = ["UNKNOWN_PICTURE", "image_tokens"]

UNKNOWN_PICTURE = 1024
"""Tokens of a picture of a family that is not known, or of a size that is not."""
_TYPICAL = (1024, 1024)
"""Pixels that a picture is taken to have whose size is not known, for a family whose rule needs it."""
Rule: TypeAlias = Callable[[int, int, bool], float]


@dataclass(frozen=True, slots=True)
class Grid:
    """One token a square of `side` pixels, of a picture scaled to so many tokens and to edges of so many pixels.

    round: sides go to the nearest whole square and not to the next. rows: a token ends each row.
    """

    side: int
    least: int = 1
    most: int = 1 << 14
    edge: int | None = None
    nearest: bool = False
    rows: bool = False
    around: int = 0

    def __call__(self, width: int, height: int, low: bool) -> float:
        del low
        shrunk = 1.0 if self.edge is None else min(1.0, self.edge / max(width, height))
        across, down = width * shrunk / self.side, height * shrunk / self.side
        step: Callable[[float], int] = round if self.nearest else ceil
        columns, lines = max(1, step(across)), max(1, step(down))
        if columns * lines > self.most:
            by = sqrt(across * down / self.most)
            columns, lines = max(1, floor(across / by)), max(1, floor(down / by))
        elif columns * lines < self.least:
            by = sqrt(self.least / (across * down))
            columns, lines = ceil(across * by), ceil(down * by)
        return columns * lines + (lines if self.rows else 0) + self.around


@dataclass(frozen=True, slots=True)
class Tiles:
    """`each` tokens a tile, of as many tiles as its shape is best cut into, and one of the whole beside several."""

    side: int
    each: int
    most: int
    around: int = 2

    def __call__(self, width: int, height: int, low: bool) -> float:
        del low
        columns, lines = _cut(width, height, self.side, self.most)
        tiles = columns * lines
        return (tiles + (tiles > 1)) * self.each + self.around


@dataclass(frozen=True, slots=True)
class OpenAiTiles:
    """OpenAI: scaled into 2,048 x 2,048, the shorter side to 768; a base and so many tokens a tile of 512."""

    base: int
    tile: int

    def __call__(self, width: int, height: int, low: bool) -> float:
        if low:
            return self.base
        fit = min(1.0, 2048 / max(width, height))
        fit *= min(1.0, 768 / (min(width, height) * fit))
        return self.base + self.tile * ceil(width * fit / 512) * ceil(height * fit / 512)


@dataclass(frozen=True, slots=True)
class OpenAiPatches:
    """OpenAI's smaller models: at most 1,536 patches of 32 pixels, each counted as so many tokens."""

    factor: float

    def __call__(self, width: int, height: int, low: bool) -> float:
        del low
        return self.factor * min(1536, ceil(width / 32) * ceil(height / 32))


def _claude(width: int, height: int, low: bool) -> float:
    """Anthropic: pixels / 750, of a picture scaled to 1,568 pixels a side and about 1,600 tokens."""
    del low
    fit = min(1.0, 1568 / max(width, height))
    return min(1600.0, max(1.0, width * fit * height * fit / 750))


@dataclass(frozen=True, slots=True)
class Fixed:
    """As many for each picture, whatever its size."""

    tokens: int

    def __call__(self, width: int, height: int, low: bool) -> float:
        del width, height, low
        return self.tokens


@lru_cache(4096)
def _cut(width: int, height: int, side: int, most: int) -> tuple[int, int]:
    """The tiles of the shape nearest to the picture's; of equally near ones the larger, if the picture fills half of it
    (InternVL, dynamic_preprocess)."""
    shape, area = width / height, width * height
    best, nearest = (1, 1), float("inf")
    grids = {(i, j) for i in range(1, most + 1) for j in range(1, most // i + 1)}
    for columns, lines in sorted(grids, key=lambda grid: (grid[0] * grid[1], grid)):
        off = abs(shape - columns / lines)
        if off < nearest or (off == nearest and area > 0.5 * side * side * columns * lines):
            best, nearest = (columns, lines), off
    return best


_QWEN_28 = Grid(28, least=4, nearest=True, around=2)
_FAMILIES: tuple[tuple[str, Rule], ...] = (
    # First match in the model's name. Self-hosted families: preprocessor_config.json of the model's repository.
    (r"qwen3(?:\.\d)?-?vl|qwen3[._-][5-9]|qwen-?3\.[5-9]|qwen3-omni", Grid(32, least=64, nearest=True, around=2)),
    (r"qwen2(?:\.5)?-?vl|qwen2\.5-omni|qvq|ui-tars|mimo-vl|ernie-4\.5-vl|paddleocr", _QWEN_28),
    (r"glm-?(?:4(?:\.\d)?v|ocr)|glm-4\.[156]v", Grid(28, least=16, most=12_288, nearest=True, around=2)),
    (r"kimi-k2\.[5-9]", Grid(28, most=4096, around=2)),  # 16,384 patches of 14 pixels, merged by four
    (r"kimi-vl", Grid(28, most=1024, around=2)),
    (r"gemma-?4", Fixed(284)),  # 280 by default
    (r"gemma-?3|medgemma|paligemma", Fixed(260)),
    (r"llama-?4", Tiles(336, 144, 16, around=4)),
    (r"llava-(?:v1\.6|next|onevision)", Tiles(336, 576, 4, around=0)),
    (r"llava|bakllava", Fixed(576)),
    (r"pixtral-12b", Grid(16, edge=1024, rows=True)),
    (r"pixtral|mistral-(?:small-(?:3\.[1-9]|2[5-9])|medium|large-3)|magistral|ministral-3|devstral-small-2",
     Grid(28, edge=1540, rows=True)),
    (r"internvl|nvlm|internlm-xcomposer|nemotron.*vl|skywork-r1v", Tiles(448, 256, 12)),
    (r"minicpm-[vo]", Tiles(448, 66, 9, around=0)),
    (r"smolvlm|idefics3|granite-docling", Tiles(512, 70, 16, around=0)),
    (r"phi-(?:3(?:\.5)?-vision|4-multimodal)", Tiles(448, 272, 16)),
    (r"claude", _claude),
    # Hosted: platform.openai.com/docs/guides/images-vision, "Calculating costs".
    (r"gpt-5(?:\.\d)?-mini|gpt-4\.1-mini", OpenAiPatches(1.62)),
    (r"gpt-5(?:\.\d)?-nano|gpt-4\.1-nano", OpenAiPatches(2.46)),
    (r"\bo4-mini", OpenAiPatches(1.72)),
    (r"gpt-4o-mini", OpenAiTiles(2833, 5667)),
    (r"gpt-5", OpenAiTiles(70, 140)),
    (r"\bo[13](?:-pro)?\b", OpenAiTiles(75, 150)),
    (r"gpt-4", OpenAiTiles(85, 170)),
)  # fmt: skip
_RULES = tuple((re.compile(pattern), rule) for pattern, rule in _FAMILIES)


@lru_cache(1024)
def _rule_of(model: str) -> Rule | None:
    name = model.lower().replace("_", "-")
    return next((rule for pattern, rule in _RULES if pattern.search(name)), None)


def image_tokens(model: str, picture: Picture) -> tuple[int, bool]:
    """(tokens, known) of one picture for the model of that name; not known: a guess for any picture of any model."""
    rule = _rule_of(model)
    if rule is None:
        return UNKNOWN_PICTURE, False
    known = picture.width is not None and picture.height is not None
    width, height = (picture.width or 0, picture.height or 0) if known else _TYPICAL
    return max(1, ceil(rule(width, height, picture.low))), known or isinstance(rule, Fixed)

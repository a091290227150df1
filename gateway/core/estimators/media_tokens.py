"""Tokens of pictures, sounds and documents in a prompt: by family and size first, then as engines' counts teach."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil

from gateway.core.estimators.image_tokens import image_tokens
from gateway.core.media import Media

__all__ = ["MediaTokens", "audio_rate", "page_tokens"]

_RATES = (
    # Tokens a second. Encoders of 50 frames a second (Whisper's), pooled: by the models' configurations.
    (r"qwen3-omni", 12.5),
    (r"qwen2(?:\.5)?-(?:audio|omni)", 25.0),
    (r"voxtral", 12.5),
    (r"phi-4-multimodal", 12.5),
    (r"gemma-?3n", 6.25),
    (r"gemma-?4", 25.0),
    (r"ultravox", 6.25),
    (r"minicpm-o", 10.0),
    (r"gpt-", 10.0),  # OpenAI's audio guide: a token for 100 ms
)
_RULES = tuple((re.compile(pattern), rate) for pattern, rate in _RATES)
_ANY_RATE = 25.0
"""The densest of the usual ones."""
_PAGE = 2_300
"""A page of a PDF: 1,500 to 3,000 tokens of text by Anthropic's guide to PDF support, which pictures it too."""
_RATE = 0.1
"""Weight of an observation in the learned factor and mean (algorithms 1.1.2)."""
_FEW = 5
_CLOSEST, _FURTHEST = 0.2, 5.0
"""Factors on what is known of a family that are believed."""
_MOST = 65_536
"""Tokens of one picture that are believed."""
_MARGINS = (0.15, 0.35, 1.0)
"""Doubt: learned, known by family and size, neither; shares of the tokens."""
_CLIENTS = 4096


def audio_rate(model: str) -> float:
    """Tokens that a second of sound has for the model of that name."""
    name = model.lower().replace("_", "-")
    return next((rate for pattern, rate in _RULES if pattern.search(name)), _ANY_RATE)


def page_tokens(pages: int) -> int:
    """Tokens of so many pages."""
    return pages * _PAGE


@dataclass(slots=True)
class _Learned:
    """What one client's media on one model have: a factor on the rules, and a mean where these know nothing."""

    factor: float = 1.0
    samples: int = 0
    mean: float = 0.0
    unknown: int = 0


class MediaTokens:
    """Learns per model and client: clients send pictures of one kind, and engines scale them as they were started."""

    def __init__(self) -> None:
        self._learned: dict[tuple[str, str], _Learned] = {}

    def estimate(self, model: str, client: str, media: Media) -> tuple[int, int]:
        """(best guess, safe side) of all of it, in tokens."""
        if not media:
            return 0, 0
        learned = self._learned.get((model, client)) or _Learned()
        ruled, unruled, guessed = _by_rule(model, media)
        tokens = ruled * learned.factor
        doubt = tokens * _MARGINS[0 if learned.samples >= _FEW else 1]
        if unruled:
            rest = learned.mean * unruled if learned.unknown else guessed
            tokens += rest
            doubt += rest * _MARGINS[0 if learned.unknown >= _FEW else 2]
        return ceil(tokens), ceil(tokens + doubt)

    def learn(self, model: str, client: str, media: Media, tokens: int) -> None:
        """Learn that all of it had so many tokens: as an engine told, or what was left of a prompt without its text."""
        if not media or tokens <= 0:
            return
        learned = self._of(model, client)
        ruled, unruled, _ = _by_rule(model, media)
        if not unruled:
            learned.samples += 1
            ratio = min(_FURTHEST, max(_CLOSEST, tokens / max(1.0, ruled)))
            learned.factor += max(_RATE, 1.0 / (learned.samples + 1)) * (ratio - learned.factor)
            return
        each = min(_MOST, max(1.0, (tokens - ruled * learned.factor) / unruled))
        learned.unknown += 1
        learned.mean += max(_RATE, 1.0 / learned.unknown) * (each - learned.mean)

    def _of(self, model: str, client: str) -> _Learned:
        learned = self._learned.get((model, client))
        if learned is None:
            if len(self._learned) >= _CLIENTS:
                del self._learned[next(iter(self._learned))]
            learned = self._learned[model, client] = _Learned()
        return learned


def _by_rule(model: str, media: Media) -> tuple[float, int, float]:
    """(tokens of what a rule is known for, pictures without one, what these are guessed to have)."""
    ruled = media.seconds * audio_rate(model) + page_tokens(media.pages)
    unruled, guessed = 0, 0.0
    for picture in media.pictures:
        tokens, known = image_tokens(model, picture)
        if known:
            ruled += tokens
        else:
            unruled += 1
            guessed += tokens
    return ruled, unruled, guessed

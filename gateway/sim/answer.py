"""The emulated answer: pseudo-words of four bytes, fixed by the prompt, so that any two engines say the same."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import xxhash

from gateway.sim.text import BYTES_PER_TOKEN

__all__ = ["Answer", "natural_tokens", "write_answer"]

WORDS = tuple(f"{first}{vowel}{last} " for first in "bdklmnrv" for vowel in "aeiou" for last in "lnr")
MEDIAN_TOKENS = 200.0
SPREAD = 0.8
LONGEST_TOKENS = 2000


@dataclass(frozen=True, slots=True)
class Answer:
    """One choice, known in full before its first token is computed."""

    generated: str
    """Everything the engine computes, four bytes a token."""
    visible: str
    """What the client sees: cut before a stop string."""
    finish_reason: str
    stop_reason: str | None = None

    @property
    def tokens(self) -> int:
        """Tokens to compute."""
        return len(self.generated) // BYTES_PER_TOKEN

    def piece(self, start: int, stop: int) -> str:
        """Visible text of the tokens from `start` to `stop`."""
        return self.visible[start * BYTES_PER_TOKEN : stop * BYTES_PER_TOKEN]


def natural_tokens(prompt: bytes, choice: int = 0) -> int:
    """Length at which the emulated model stops by itself: log-normal, median 200, at most 2000 tokens."""
    chance = random.Random(xxhash.xxh3_64_intdigest(prompt, choice))
    return min(LONGEST_TOKENS, max(1, round(MEDIAN_TOKENS * math.exp(chance.gauss(0.0, SPREAD)))))


def write_answer(
    prompt: bytes, choice: int, natural: int, limit: int, stops: Sequence[str] = (), said: str = ""
) -> Answer:
    """The answer to `prompt`: `natural` tokens, at most `limit`, or up to the first of `stops`.

    `said`: how it has begun; then it is the rest, if it begins like that.
    """
    chance = random.Random(xxhash.xxh3_64_intdigest(prompt, choice + 1_000_003))
    before = -(-len(said) // BYTES_PER_TOKEN)
    text = "".join(chance.choices(WORDS, k=min(natural, before + limit)))
    if said and text.startswith(said):
        text, natural = text[len(said) :], max(natural - before, 1)
        text = (text or " ").ljust(-(-len(text) // BYTES_PER_TOKEN) * BYTES_PER_TOKEN)[: limit * BYTES_PER_TOKEN]
    else:
        text = text[: limit * BYTES_PER_TOKEN]
    found = [(at, stop) for stop in stops if stop and (at := text.find(stop)) >= 0]
    if found:
        at, stop = min(found)
        end = -(-(at + len(stop)) // BYTES_PER_TOKEN) * BYTES_PER_TOKEN
        return Answer(text[:end], text[:at], "stop", stop)
    return Answer(text, text, "length" if natural > limit else "stop")

"""What an answer cost, read from any engine's `usage` and from llama.cpp's `timings`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["MOST_TOKENS", "Usage", "UsageTally", "credible", "usage_of"]


MOST_TOKENS = 2**24
"""What is above is no count of tokens: the largest windows are ten million."""
_MOST_MILLISECONDS = 1e8
_KINDS = ("image", "audio", "video")
_TEMPLATE = 65_536
"""Tokens that an engine may add to a prompt: its template, a system prompt of its own."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and, where the engine tells, seconds. None: the engine did not say, or said what can't be true."""

    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None = None
    prompt_seconds: float | None = None
    decode_seconds: float | None = None
    media_tokens: int | None = None
    """Of the prompt's: pictures, sounds and videos."""


def usage_of(payload: Mapping[str, Any]) -> Usage | None:
    """The usage in a decoded answer or chunk, or None when it has none.

    llama.cpp puts `timings` on the last chunk of every stream: `cache_n + prompt_n` are the prompt's tokens,
    `predicted_n` the generated ones, so its usage can be read without asking for it.
    """
    usage, timings = payload.get("usage"), payload.get("timings")
    if not isinstance(usage, dict):
        usage = {}
    if not isinstance(timings, dict):
        timings = {}
    cached = _whole(timings.get("cache_n"))
    processed = _whole(timings.get("prompt_n"))
    prompt = _whole(usage.get("prompt_tokens"))
    if prompt is None and processed is not None:
        prompt = processed + (cached or 0)
    completion = _whole(usage.get("completion_tokens"))
    if completion is None:
        completion = _whole(timings.get("predicted_n"))
    if prompt is None and completion is None:
        return None
    details, media = usage.get("prompt_tokens_details"), None
    if isinstance(details, dict):
        media = _media(details)
        told = _whole(details.get("cached_tokens"))
        cached = told if told is not None else cached
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached if cached is not None and prompt is not None and cached <= prompt else None,
        prompt_seconds=_seconds(timings.get("prompt_ms")),
        decode_seconds=_seconds(timings.get("predicted_ms")),
        media_tokens=media if media is not None and prompt is not None and media <= prompt else None,
    )


def _media(details: Mapping[str, Any]) -> int | None:
    """By kind: vLLM tells `multimodal_tokens`, OpenAI `audio_tokens` and some others `image_tokens` beside it."""
    kinds = details.get("multimodal_tokens")
    told = list(kinds.values()) if isinstance(kinds, dict) else [details.get(f"{kind}_tokens") for kind in _KINDS]
    found = [tokens for value in told if (tokens := _whole(value)) is not None]
    return sum(found) or None


def credible(usage: Usage, *, prompt_bytes: int | None, budget: int | None) -> Usage:
    """The usage without figures that this request can't have had.

    A token of text is a byte at least: `prompt_bytes` of the body, None where pictures or sounds have tokens of their
    own. `budget`: output tokens over all choices, None when there was none; twice as many are let pass, since some
    engines count what they drafted or thought apart from it.
    """
    if prompt_bytes is not None and (usage.prompt_tokens or 0) > prompt_bytes + _TEMPLATE:
        usage = replace(usage, prompt_tokens=None, cached_tokens=None)
    if budget is not None and (usage.completion_tokens or 0) > 2 * budget + 64:
        usage = replace(usage, completion_tokens=None)
    return usage


class UsageTally:
    """The usage of a whole exchange.

    vLLM sums over all choices itself and repeats running totals; llama.cpp reports every choice apart, and its
    non-stream answer counts one choice only. `prompts` is how many prompts a completion request had.
    """

    __slots__ = ("_latest", "_parts", "_prompts", "_usage_of")

    def __init__(self, prompts: int = 1, usage_of: Callable[[Mapping[str, Any]], Usage | None] = usage_of) -> None:
        self._prompts = prompts
        self._usage_of = usage_of
        self._latest: Usage | None = None
        self._parts: dict[int, Usage] = {}

    def add(self, payload: Mapping[str, Any], choice: int) -> None:
        """Take note of a chunk's usage, if it has any; `choice` is the index that it speaks of."""
        usage = self._usage_of(payload)
        if usage is None:
            return
        self._latest = usage
        if usage.prompt_seconds is not None:  # from `timings`: one choice's own
            self._parts[choice] = usage

    @property
    def total(self) -> Usage | None:
        """The sum over choices; one prompt shared by several choices counts once."""
        latest = self._latest
        if latest is None or len(self._parts) < 2:
            return latest
        parts = self._parts.values()
        total = replace(
            latest,
            completion_tokens=sum(part.completion_tokens or 0 for part in parts),
            decode_seconds=max(part.decode_seconds or 0.0 for part in parts),
        )
        if self._prompts < 2:
            return total
        return replace(
            total,
            prompt_tokens=sum(part.prompt_tokens or 0 for part in parts),
            cached_tokens=sum(part.cached_tokens or 0 for part in parts),
            prompt_seconds=sum(part.prompt_seconds or 0.0 for part in parts),
        )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None


def _seconds(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST_MILLISECONDS:
        return value / 1000.0
    return None

"""What an answer cost, in Anthropic's figures: `input_tokens` leaves out what came from the cache."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.wire.usage import MOST_TOKENS, Usage

__all__ = ["MessagesTally", "messages_usage", "usage_figures"]

_INPUTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class MessagesTally:
    """The usage of one stream: `message_start` tells the prompt, `message_delta` running totals.

    Engines differ in what they repeat (llama.cpp tells the prompt at the start only, vLLM both times, others zeros at
    the start), so the largest figure of each kind counts.
    """

    __slots__ = ("_figures",)

    def __init__(self) -> None:
        self._figures: dict[str, int] = {}

    def add(self, usage: object) -> None:
        """Take note of the `usage` of an event, if it is any."""
        if not isinstance(usage, Mapping):
            return
        for name in (*_INPUTS, "output_tokens"):
            told = _whole(usage.get(name))
            if told is not None:
                self._figures[name] = max(told, self._figures.get(name, 0))

    @property
    def total(self) -> Usage | None:
        """The usage so far, or None when the engine told none."""
        return messages_usage(self._figures)


def messages_usage(usage: object) -> Usage | None:
    """The usage of a decoded `usage` object, or None when there is none in it.

    The whole prompt is `input_tokens` and what was read from the cache and what was written to it.
    """
    if not isinstance(usage, Mapping):
        return None
    told = {name: _whole(usage.get(name)) for name in _INPUTS}
    output = _whole(usage.get("output_tokens"))
    known = [value for value in told.values() if value is not None]
    if not known and output is None:
        return None
    return Usage(
        prompt_tokens=sum(known) if told["input_tokens"] is not None else None,
        completion_tokens=output,
        cached_tokens=told["cache_read_input_tokens"] if told["input_tokens"] is not None else None,
    )


def usage_figures(usage: Usage | None) -> dict[str, int]:
    """The `usage` object of a message; zeros for what the engine did not tell, since the members are required."""
    prompt = (usage.prompt_tokens or 0) if usage is not None else 0
    cached = (usage.cached_tokens or 0) if usage is not None else 0
    return {
        "input_tokens": prompt - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": (usage.completion_tokens or 0) if usage is not None else 0,
    }


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None

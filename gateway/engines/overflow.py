"""Every engine's words for "too long for the window", brought to one.

Agents decide to compact their history by matching on the text, so the client always reads OpenAI's own phrase,
"maximum context length is N tokens".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["Overflow", "overflow", "overflow_message"]


class Overflow(NamedTuple):
    """limit: tokens of the window; requested: tokens asked for. None where the engine does not say."""

    limit: int | None
    requested: int | None


_LIMIT, _ASKED, _MORE = r"(?P<limit>\d+)", r"(?P<asked>\d+)", r"(?P<more>\d+)"
_WORDINGS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        # llama.cpp, now and through 2025
        rf"request \({_ASKED} tokens\) exceeds the available context size \({_LIMIT} tokens\)",
        r"request exceeds the available context size",
        # vLLM, newest first
        rf"maximum context length is {_LIMIT} tokens.*?for a total of (?:at least )?{_ASKED} tokens",
        rf"maximum context length is {_LIMIT} tokens.*?prompt contains (?:at least )?{_ASKED} ",
        rf"maximum context length is {_LIMIT} tokens.*?you requested {_ASKED} tokens",
        rf"too large: {_MORE}\..*?maximum context length is {_LIMIT} tokens and your request has {_ASKED} input tokens",
        rf"max_tokens={_ASKED} cannot be greater than max_model_len={_LIMIT}",
        rf"\(length {_ASKED}\) is longer than the maximum model length of {_LIMIT}",
        rf"you passed {_ASKED} input tokens.*?context length is only {_LIMIT} tokens",
        r"max_tokens must be at least 1, got -\d+",
        # SGLang
        rf"maximum context length of {_LIMIT} tokens\. You requested a total of {_ASKED} tokens",
        rf"input \({_ASKED} tokens\) is longer than the model's context length \({_LIMIT} tokens\)",
        # Whatever else speaks OpenAI's words, or nearly
        rf"maximum context length (?:is|of) {_LIMIT}",
        r"context_length_exceeded|exceeds? the (?:model's )?(?:maximum )?context (?:length|window)",
    )
)


def overflow(error: Mapping[str, Any]) -> Overflow | None:
    """What an engine's error says about the window, or None when it is about something else."""
    message = str(error.get("message") or "")
    limit, asked = error.get("n_ctx"), error.get("n_prompt_tokens")
    if error.get("type") == "exceed_context_size_error" and isinstance(limit, int) and isinstance(asked, int):
        return Overflow(limit, asked)
    for wording in _WORDINGS:
        found = wording.search(message)
        if found is not None:
            told = {name: int(digits) for name, digits in found.groupdict().items()}
            requested = told["asked"] + told.get("more", 0) if "asked" in told else None
            return Overflow(told.get("limit"), requested)
    if error.get("code") == "context_length_exceeded" or error.get("type") == "exceed_context_size_error":
        return Overflow(None, None)
    return None


def overflow_message(limit: int | None, requested: int | None) -> str:
    """The sentence for the client."""
    if limit is None:
        return "The request is longer than this model's maximum context length. Please shorten the messages."
    asked = "your request needs more" if requested is None else f"your request needs {requested} tokens"
    return (
        f"This model's maximum context length is {limit} tokens. However, {asked}. "
        "Please shorten the messages or ask for fewer output tokens."
    )

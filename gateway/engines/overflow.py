"""Every engine's words for "too long for the window", brought to one.

Agents decide to compact their history by matching on the text, so the client always reads OpenAI's own phrase,
"maximum context length is N tokens". Wordings are from the servers' sources, or from reports of users who met them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["Overflow", "overflow", "overflow_message"]


class Overflow(NamedTuple):
    """limit: tokens of the window; requested: tokens asked for; prompt: those of the prompt alone, counted. None where
    the engine does not say."""

    limit: int | None
    requested: int | None
    prompt: int | None = None


_LIMIT, _ASKED, _MORE = r"(?P<limit>\d[\d,]*)", r"(?P<asked>\d[\d,]*)", r"(?P<more>\d[\d,]*)"
_PROMPT = r"(?P<prompt>\d[\d,]*)"
_WORDINGS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        # llama.cpp, now and through 2025 (Ollama passes it on); embeddings that do not fit one batch
        rf"request \({_PROMPT} tokens\) exceeds the available context size \({_LIMIT} tokens\)",
        r"request exceeds the available context size",
        rf"input \({_ASKED} tokens\) is too large to process\..*?batch size: {_LIMIT}\)",
        r"input is too large to process\. increase the physical batch size",
        # vLLM, newest first
        rf"maximum context length is {_LIMIT} tokens.*?for a total of (?:at least )?{_ASKED} tokens",
        rf"maximum context length is {_LIMIT} tokens.*?prompt contains (?:at least )?{_ASKED} ",
        rf"maximum context length is {_LIMIT} tokens.*?you requested {_ASKED} tokens \({_PROMPT} (?:in|of|from) ",
        rf"maximum context length is {_LIMIT} tokens.*?you requested (?:about )?{_ASKED} tokens",
        rf"too large: {_MORE}\..*?maximum context length is {_LIMIT} tokens and your request has {_PROMPT} input",
        rf"max_tokens={_ASKED} cannot be greater than max_model_len={_LIMIT}",
        rf"\(length {_PROMPT}\) is longer than the maximum model length of {_LIMIT}",
        rf"you passed {_PROMPT} input tokens.*?context length is only {_LIMIT} tokens",
        r"max_tokens must be at least 1, got -\d+",
        # SGLang
        rf"maximum context length of {_LIMIT} tokens\. You requested a total of {_ASKED} tokens",
        rf"input \({_PROMPT} tokens\) is longer than the model's context length \({_LIMIT} tokens\)",
        rf"input length \({_PROMPT} tokens\) exceeds the maximum allowed length \({_LIMIT} tokens\)",
        # DwarfStar
        rf"prompt has {_PROMPT} tokens?, but the configured context size is {_LIMIT} tokens?",
        rf"prompt tokens \({_PROMPT}\) exceeds? context size \({_LIMIT}\)",
        # Ollama
        r"prompt too long; exceeded (?:max )?context length",
        # Anthropic
        rf"prompt is too long: {_PROMPT} tokens > {_LIMIT} maximum",
        rf"exceed context limit: {_PROMPT} \+ {_MORE} > {_LIMIT}",
        r"prompt is too long",
        # OpenAI
        rf"maximum context length is {_LIMIT} tokens.*?messages resulted in {_PROMPT} tokens",
        rf"maximum context length is {_LIMIT} tokens.*?messages resulted in over {_ASKED} tokens",
        # LM Studio
        rf"tokens to keep from the initial prompt is greater than the context length \(n_keep: {_ASKED}\D+{_LIMIT}\)",
        r"tokens to keep from the initial prompt is greater than the context length",
        rf"trying to keep the first {_ASKED} tokens.*?context length of only {_LIMIT} tokens",
        # TabbyAPI (ExLlama)
        rf"length {_PROMPT} \+ {_MORE} is greater than max_seq_len {_LIMIT}",
        rf"length {_PROMPT} is greater than max_seq_len {_LIMIT}",
        # text-generation-inference
        rf"must be <= {_LIMIT}\. Given: {_PROMPT} `inputs` tokens and {_MORE} `max_new_tokens`",
        rf"`inputs` must have less than {_LIMIT} tokens\. Given: {_PROMPT}",
        # Hosted services that speak OpenAI's API
        rf"input token count \({_PROMPT}\) exceeds the maximum number of tokens allowed \({_LIMIT}\)",
        rf"maximum prompt length is {_LIMIT} but the request contains {_PROMPT} tokens",
        rf"prompt token count of {_PROMPT} exceeds the limit of {_LIMIT}",
        rf"exceeded model token limit: {_LIMIT} \(requested: {_ASKED}\)",
        r"input is too long for requested model|context window exceeds limit|exceeded model token limit",
        # Whatever else speaks OpenAI's words, or nearly
        rf"maximum context length (?:is|of) {_LIMIT}",
        r"context_length_exceeded|exceeds? the (?:model's )?(?:maximum )?context (?:length|window)",
    )
)
_CODES = frozenset(("context_length_exceeded", "exceed_context_size_error", "context_exceeded"))
"""As `code` or `type`: OpenAI and NInfer, llama.cpp, DwarfStar."""
_FIELDS = (("n_ctx", "n_prompt_tokens"), ("max_context", "prompt_tokens"))
"""Members with limit and prompt: llama.cpp and DwarfStar; NInfer."""


def overflow(error: Mapping[str, Any]) -> Overflow | None:
    """What an engine's error says about the window, or None when it is about something else."""
    message = str(error.get("message") or "")
    by_code = any(isinstance(error.get(name), str) and error[name] in _CODES for name in ("code", "type"))
    if by_code:
        for limit, asked in ((error.get(limit), error.get(asked)) for limit, asked in _FIELDS):
            if isinstance(limit, int) and isinstance(asked, int):
                return Overflow(limit, asked, asked)
    for wording in _WORDINGS:
        found = wording.search(message)
        if found is not None:
            told = {name: int(digits.replace(",", "")) for name, digits in found.groupdict().items()}
            prompt, requested = told.get("prompt"), told.get("asked")
            if requested is None and prompt is not None:
                requested = prompt + told.get("more", 0)
            return Overflow(told.get("limit"), requested, prompt)
    return Overflow(None, None) if by_code else None


def overflow_message(limit: int | None, requested: int | None) -> str:
    """The sentence for the client."""
    if limit is None:
        return "The request is longer than this model's maximum context length. Please shorten the messages."
    asked = "your request needs more" if requested is None else f"your request needs {requested} tokens"
    return (
        f"This model's maximum context length is {limit} tokens. However, {asked}. "
        "Please shorten the messages or ask for fewer output tokens."
    )

"""Bodies of /v1/chat/completions and /v1/completions, as far as the emulated engine follows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.sim.answer import LONGEST_TOKENS, Answer, natural_tokens, write_answer
from gateway.sim.api_error import ApiError, bad_value, context_too_long, from_decoding, unknown_model
from gateway.sim.rendering import Message, begun, render_chat, render_prompt
from gateway.sim.text import BYTES_PER_TOKEN

__all__ = ["Ask", "read_chat", "read_completion"]

DEFAULT_COMPLETION_TOKENS = 16
"""max_tokens of /v1/completions where the request names none."""


class _StreamOptions(msgspec.Struct):
    include_usage: bool = False
    continuous_usage_stats: bool = False


class _Body(msgspec.Struct, kw_only=True):
    model: str | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: float | None = None
    n: int | None = 1
    stream: bool | None = False
    stream_options: _StreamOptions | None = None
    stop: str | list[str] | None = None
    ignore_eos: bool = False
    return_token_ids: bool | None = None


class _ChatBody(_Body, kw_only=True):
    messages: list[Message]
    tools: list[Any] | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False


class _CompletionBody(_Body, kw_only=True):
    prompt: str | list[Any]


_CHAT = msgspec.json.Decoder(_ChatBody)
_COMPLETION = msgspec.json.Decoder(_CompletionBody)


@dataclass(frozen=True, slots=True)
class Ask:
    """One API request: its prompts, each with the answers that it will get."""

    chat: bool
    prompts: tuple[bytes, ...]
    answers: tuple[tuple[Answer, ...], ...]
    stream: bool
    include_usage: bool
    continuous_usage: bool
    token_ids: bool = False

    @property
    def prompt_tokens(self) -> int:
        """Tokens of all prompts."""
        return sum(map(len, self.prompts)) // BYTES_PER_TOKEN


def read_chat(body: bytes, model: str, max_model_len: int, answer_tokens: int | None) -> Ask:
    """The request in a chat body; ApiError where vLLM would refuse it.

    `answer_tokens` is the length at which the emulated model stops by itself, None for one that depends on the prompt.
    """
    try:
        decoded = _CHAT.decode(body)
    except msgspec.MsgspecError as error:
        raise from_decoding(error, body) from None
    _check(decoded, model, max_model_len)
    for message in decoded.messages:
        parts = message.content if isinstance(message.content, list) else ()
        if any(part.get("type", "text") != "text" for part in parts):
            raise ApiError(400, f"{model} is not a multimodal model", "BadRequestError")
    prompt = _rendered(decoded)
    wanted = decoded.max_tokens if decoded.max_completion_tokens is None else decoded.max_completion_tokens
    return _ask(True, [prompt], decoded, wanted, max_model_len, answer_tokens)


def _rendered(body: _ChatBody) -> bytes:
    """The prompt; with `continue_final_message` it ends in the middle of the last message."""
    if not body.continue_final_message:
        return render_chat(body.messages, body.tools)
    if body.add_generation_prompt:
        raise bad_value("Cannot set both `continue_final_message` and `add_generation_prompt` to True.", "body", None)
    before, last = body.messages[:-1], body.messages[-1:]
    said = last[0].content if last and isinstance(last[0].content, str) else ""
    return render_chat(before, body.tools) + said.encode()


def read_completion(body: bytes, model: str, max_model_len: int, answer_tokens: int | None) -> Ask:
    """The request in a body of /v1/completions: a prompt or several, as text or as token ids."""
    try:
        decoded = _COMPLETION.decode(body)
    except msgspec.MsgspecError as error:
        raise from_decoding(error, body) from None
    _check(decoded, model, max_model_len)
    prompts = [render_prompt(each) for each in _prompts(decoded.prompt)]
    wanted = DEFAULT_COMPLETION_TOKENS if decoded.max_tokens is None else decoded.max_tokens
    return _ask(False, prompts, decoded, wanted, max_model_len, answer_tokens)


def _prompts(prompt: str | list[Any]) -> list[str | list[int]]:
    if isinstance(prompt, str) or _are_ids(prompt):
        return [prompt]
    if not all(isinstance(each, str) or _are_ids(each) for each in prompt):
        raise ApiError(400, "prompt must be text, token ids, or a list of either", "BadRequestError", "prompt")
    return prompt


def _are_ids(prompt: object) -> bool:
    return isinstance(prompt, list) and all(type(each) is int for each in prompt)


def _check(body: _Body, model: str, max_model_len: int) -> None:
    if body.model is not None and body.model != model:
        raise unknown_model(body.model, model)
    if body.temperature is not None and body.temperature < 0:
        raise bad_value(f"temperature must be non-negative, got {body.temperature}.", "temperature", body.temperature)
    tokens = body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens
    if tokens is not None and tokens < 1:
        raise bad_value(f"max_tokens must be at least 1, got {tokens}.", "max_tokens", tokens)
    if tokens is not None and tokens > max_model_len:
        message = f"max_tokens={tokens} cannot be greater than max_model_len={max_model_len}."
        raise bad_value(f"{message} Please request fewer output tokens.", "max_tokens", tokens)
    if body.n is not None and body.n < 1:
        raise bad_value(f"n must be at least 1, got {body.n}.", "n", body.n)


def _ask(
    chat: bool, prompts: Sequence[bytes], body: _Body, wanted: int | None, max_model_len: int, answer_tokens: int | None
) -> Ask:
    stops = [body.stop] if isinstance(body.stop, str) else body.stop or []
    answers = []
    for prompt in prompts:
        tokens = len(prompt) // BYTES_PER_TOKEN
        if tokens < 1:
            raise ApiError(400, "The prompt is empty", "BadRequestError", "prompt")
        if tokens + (wanted or 1) > max_model_len:
            raise context_too_long(tokens, wanted, max_model_len)
        limit = wanted or max_model_len - tokens
        choices = []
        for choice in range(body.n or 1):
            asked, said = begun(prompt)
            natural = natural_tokens(asked, choice) if answer_tokens is None else answer_tokens
            if body.ignore_eos:
                natural = LONGEST_TOKENS + limit
            choices.append(write_answer(asked, choice, natural, limit, stops, said))
        answers.append(tuple(choices))
    options = body.stream_options or _StreamOptions()
    return Ask(
        chat=chat,
        prompts=tuple(prompts),
        answers=tuple(answers),
        stream=bool(body.stream),
        include_usage=options.include_usage,
        continuous_usage=options.continuous_usage_stats,
        token_ids=bool(body.return_token_ids),
    )

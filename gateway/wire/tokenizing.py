"""Read from bodies of /tokenize and /detokenize what the decision needs; the bodies are forwarded as they came."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.chat_request import ChatRequest
from gateway.wire.conversation import Conversation, conversation_request
from gateway.wire.inputs import Given, inputs
from gateway.wire.malformed import decoded
from gateway.wire.members import distinct_members
from gateway.wire.plain_request import Named, inputs_request, plain_request
from gateway.wire.rendered import Rendered

__all__ = ["parse_detokenize", "parse_tokenize"]

MAX_TEXTS = 2048
"""Texts of one request; SGLang takes a list of them."""


class _Tokenize(Conversation):
    prompt: Given = None
    content: Given = None


class _Detokenize(Named):
    tokens: list[int | list[int]] | None = None


_TOKENIZE = msgspec.json.Decoder(_Tokenize)
_DETOKENIZE = msgspec.json.Decoder(_Detokenize)


def parse_tokenize(body: bytes) -> ChatRequest:
    """Read `prompt` (vLLM, SGLang), `content` (llama.cpp) or `messages` (vLLM).

    Raises MalformedRequest with `param` naming the member at fault.
    """
    parsed = decoded(_TOKENIZE, body)
    found = distinct_members(body)
    if parsed.messages is not None:
        return conversation_request("tokenize", parsed, found)
    name = "content" if parsed.prompt is None and parsed.content is not None else "prompt"
    given = parsed.content if name == "content" else parsed.prompt
    if given == []:  # llama.cpp answers with no tokens
        given = ""
    return inputs_request("tokenize", parsed.model, inputs(name, given, MAX_TEXTS), found)


def parse_detokenize(body: bytes) -> ChatRequest:
    """Read `tokens`: ids, or lists of them (SGLang). There is no text; `prompt_tokens` counts them.

    Raises MalformedRequest with `param` naming the member at fault.
    """
    parsed = decoded(_DETOKENIZE, body)
    if parsed.tokens is None:
        raise MalformedRequest("tokens is required", param="tokens", code="missing_required_parameter")
    count = sum(1 if isinstance(token, int) else len(token) for token in parsed.tokens)
    found = distinct_members(body)
    return plain_request("detokenize", parsed.model, Rendered([], []), found, prompt_tokens=count)

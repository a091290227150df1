"""Read from bodies of /tokenize and /detokenize what the decision needs; the bodies are forwarded as they came."""

from __future__ import annotations

import msgspec

from gateway.errors import MalformedRequest
from gateway.wire.chat_body import NOTHING
from gateway.wire.chat_request import ChatRequest
from gateway.wire.conversation import Conversation, conversation_request
from gateway.wire.distinct import distinct_members
from gateway.wire.inputs import inputs, is_unsaid
from gateway.wire.malformed import decoded
from gateway.wire.plain_request import Named, inputs_request, plain_request
from gateway.wire.rendered import Rendered

__all__ = ["parse_detokenize", "parse_tokenize"]

MAX_TEXTS = 2048
"""Texts of one request; SGLang takes a list of them."""


class _Tokenize(Conversation):
    prompt: msgspec.Raw = NOTHING
    content: msgspec.Raw = NOTHING


class _Detokenize(Named):
    tokens: msgspec.Raw = NOTHING


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
    if is_unsaid(parsed.prompt) and not is_unsaid(parsed.content):
        return inputs_request("tokenize", parsed.model, inputs("content", parsed.content, MAX_TEXTS), found)
    return inputs_request("tokenize", parsed.model, inputs("prompt", parsed.prompt, MAX_TEXTS), found)


def parse_detokenize(body: bytes) -> ChatRequest:
    """Read `tokens`: ids, or lists of them (SGLang). There is no text; `prompt_tokens` counts them.

    Raises MalformedRequest with `param` naming the member at fault.
    """
    parsed = decoded(_DETOKENIZE, body)
    found = distinct_members(body)
    tokens = [0] if bytes(parsed.tokens) == b"[]" else inputs("tokens", parsed.tokens, MAX_TEXTS).tokens
    if tokens is None:
        raise MalformedRequest("tokens must be a list of token ids", param="tokens")
    return plain_request("detokenize", parsed.model, Rendered([], []), found, prompt_tokens=sum(tokens))

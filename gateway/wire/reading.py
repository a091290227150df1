"""A body of any surface, read once for what the decision needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import msgspec
import xxhash

from gateway.errors import MalformedRequest
from gateway.wire.audio import parse_transcription, parse_translation
from gateway.wire.chat_request import ChatRequest, parse_chat, parse_completion
from gateway.wire.embeddings import parse_embeddings
from gateway.wire.image_edits import parse_image_edits
from gateway.wire.images import parse_images
from gateway.wire.malformed import decoded
from gateway.wire.rerank import parse_rerank, parse_score
from gateway.wire.speech import parse_speech
from gateway.wire.tokenizing import parse_detokenize, parse_tokenize
from gateway.wire.translations import to_hub

__all__ = ["read_request"]


class _HubParser(Protocol):
    def __call__(self, body: bytes, *, ours: bool) -> ChatRequest: ...


_JSON: Mapping[str, Callable[[bytes], ChatRequest]] = {
    "chat": parse_chat,
    "completions": parse_completion,
    "embeddings": parse_embeddings,
    "rerank": parse_rerank,
    "score": parse_score,
    "tokenize": parse_tokenize,
    "detokenize": parse_detokenize,
    "images": parse_images,
    "speech": parse_speech,
}
_FORMS = {
    "transcriptions": parse_transcription,
    "translations": parse_translation,
    "image_edits": parse_image_edits,
}
_HUBS: Mapping[str, _HubParser] = {"chat": parse_chat, "completions": parse_completion, "embeddings": parse_embeddings}
_COUNTED_AS = {"count_tokens": "messages"}


class _Reference(msgspec.Struct):
    previous_response_id: Any = None
    conversation: Any = None


_REFERENCE = msgspec.json.Decoder(_Reference)


_JOINED = frozenset(("messages", "count_tokens", "responses"))
"""Surfaces whose translation joins what stands in a row; an engine that speaks them wraps each in its template."""
_TURN = re.compile(rb'"role"\s*:|"type"\s*:\s*"(?:tool_use|tool_result|(?:custom_tool|function)_call(?:_output)?)"')
_SYSTEM_TURN = re.compile(rb'"role"\s*:\s*"system"')
"""A turn of the system's among the messages, as Claude Code sends since 2.1.154: vLLM took only user and assistant
turns then (vllm-project/vllm 44000), and chat templates of Qwen's raise. In a text its quotes would be escaped."""


def read_request(surface: str, body: bytes, content_type: str = "application/json") -> ChatRequest:
    """Read a body. Raises MalformedRequest, with `param` naming the member at fault.

    A surface that translates to chat is read as the chat body that it becomes; the body itself is forwarded as it came
    to an engine that speaks the surface. `content_type` matters for forms.
    """
    parse = _JSON.get(surface)
    if parse is not None:
        return parse(body)
    if surface in _FORMS:
        chat = _FORMS[surface](body, content_type).chat
        chat.text.pieces.append(xxhash.xxh3_128_digest(body))  # two forms are alike only if their files are
        return chat
    chat = _through(_COUNTED_AS.get(surface, surface), body)
    previous = _previous(body) if surface == "responses" else None
    beyond = surface == "messages" and _SYSTEM_TURN.search(body) is not None
    turns = len(_TURN.findall(body)) if surface in _JOINED else 0
    return replace(chat, surface=surface, previous=previous, beyond=beyond, turns=turns, members=())


def _through(surface: str, body: bytes) -> ChatRequest:
    """Read through the first hub that has a place for all of it; else through the first, with what it has none for."""
    read: ChatRequest | None = None
    for hub, parse in _HUBS.items():
        translate = to_hub(surface, hub)
        if translate is None:
            continue
        translated = translate(body)
        if read is None or not translated.lost:
            read = replace(parse(translated.body, ours=True), lost=translated.lost, hub=hub)
        if not read.lost:
            break
    if read is None:
        raise KeyError(surface)
    return read


def _previous(body: bytes) -> str | None:
    """The id of the stored answer that a Responses body goes on from."""
    if b"previous_response_id" not in body and b"conversation" not in body:
        return None
    reference = decoded(_REFERENCE, body)
    if reference.conversation is not None:
        raise MalformedRequest(
            "conversations are not kept here, where keys of several clients share a backend's; send the whole "
            "conversation as input",
            param="conversation",
        )
    found = reference.previous_response_id
    return found if isinstance(found, str) else None

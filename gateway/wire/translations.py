"""What serves what: a surface that the engine speaks as it is, or one that it is translated to.

Chat completions are the hub. Every other generating surface translates to it and from it, so a client of any may be
served by an engine of any, in two steps where neither end is chat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gateway.wire.anthropic import answer_from_chat as messages_answer
from gateway.wire.anthropic import answer_to_chat as messages_chat_answer
from gateway.wire.anthropic import request_from_chat as messages_request
from gateway.wire.anthropic import request_to_chat as messages_chat_request
from gateway.wire.anthropic.stream_from_chat import MessageWriter
from gateway.wire.anthropic.stream_to_chat import ChatWriter as MessagesChatWriter
from gateway.wire.chained import Chained
from gateway.wire.chat_request import ChatRequest
from gateway.wire.ollama import answer_from_chat as ollama_answer
from gateway.wire.ollama import answer_to_chat as ollama_chat_answer
from gateway.wire.ollama import embeddings, generate_to_chat, generate_to_completions
from gateway.wire.ollama import request_from_chat as ollama_request
from gateway.wire.ollama import request_to_chat as ollama_chat_request
from gateway.wire.ollama.stream_from_chat import OllamaWriter
from gateway.wire.ollama.stream_to_chat import ChatWriter as OllamaChatWriter
from gateway.wire.responses import answer_from_chat as responses_answer
from gateway.wire.responses import answer_to_chat as responses_chat_answer
from gateway.wire.responses import request_from_chat as responses_request
from gateway.wire.responses import request_to_chat as responses_chat_request
from gateway.wire.responses.stream_from_chat import ResponseWriter
from gateway.wire.responses.stream_to_chat import ChatWriter as ResponsesChatWriter
from gateway.wire.surfaces import SURFACES
from gateway.wire.translation import Stamp, StreamWriter, Translated, Translation

__all__ = ["SPOKEN", "acceptable", "spoken_for", "to_hub", "translation"]


@dataclass(frozen=True, slots=True)
class _Pair:
    """A translation of three functions that know nothing of each other."""

    request: Callable[[bytes], Translated]
    answer: Callable[[bytes, object, Stamp], bytes]
    writer: Callable[[object, Stamp], StreamWriter]


def _no_stream(_context: object, _stamp: Stamp) -> StreamWriter:
    raise ValueError("what is no generation is not streamed")


_DIRECT: dict[tuple[str, str], Translation] = {
    ("messages", "chat"): _Pair(messages_chat_request.to_chat, messages_answer.answer, MessageWriter),
    ("responses", "chat"): _Pair(responses_chat_request.to_chat, responses_answer.answer, ResponseWriter),
    ("ollama_chat", "chat"): _Pair(ollama_chat_request.to_chat, ollama_answer.answer, OllamaWriter),
    ("ollama_generate", "chat"): _Pair(generate_to_chat.to_chat, ollama_answer.answer, OllamaWriter),
    ("ollama_generate", "completions"): _Pair(
        generate_to_completions.to_completions, ollama_answer.answer, OllamaWriter
    ),
    ("chat", "messages"): _Pair(messages_request.from_chat, messages_chat_answer.answer, MessagesChatWriter),
    ("chat", "responses"): _Pair(responses_request.from_chat, responses_chat_answer.answer, ResponsesChatWriter),
    ("chat", "ollama_chat"): _Pair(ollama_request.from_chat, ollama_chat_answer.answer, OllamaChatWriter),
    ("ollama_embed", "embeddings"): _Pair(embeddings.to_openai, embeddings.ollama_answer, _no_stream),
    ("embeddings", "ollama_embed"): _Pair(embeddings.from_openai, embeddings.openai_answer, _no_stream),
}
"""By client's surface and the engine's."""
_PROMPTS = "completions"
"""The hub of prompts that go to the model as they are: chat has no place for them."""


def _spoken(client: str) -> tuple[str, ...]:
    direct = [engine for own, engine in _DIRECT if own == client and engine != _PROMPTS]
    further = [engine for own, engine in _DIRECT if own == "chat" and engine != client] if "chat" in direct else []
    return tuple(dict.fromkeys((*direct, *further)))


SPOKEN: Mapping[str, tuple[str, ...]] = {client: _spoken(client) for client, _ in _DIRECT}
"""By client's surface: the other surfaces that it may be served by, the best first."""


_ACCEPTABLE = {name: frozenset((name, *SPOKEN.get(name, ()))) for name in SURFACES}


def acceptable(chat: ChatRequest) -> frozenset[str]:
    """The surfaces in which an engine may be asked so that the client of this request can be answered."""
    if chat.lost:
        return frozenset((chat.surface,))
    return _ACCEPTABLE[chat.surface] if chat.hub == "chat" else frozenset((chat.surface, chat.hub))


def spoken_for(chat: ChatRequest, offered: frozenset[str] | None) -> str | None:
    """The surface to ask an engine in: the client's own if it is offered (or nothing is known), else the best other.

    None when there is none, and for what no translation has a place for. What goes beyond what engines know of a
    dialect that they copy is translated, where they have chat: a service of the dialect's owner has not.
    """
    if offered is None or (chat.surface in offered and not (chat.beyond and chat.hub in offered and not chat.lost)):
        return chat.surface
    if chat.lost:
        return None
    others = SPOKEN.get(chat.surface, ()) if chat.hub == "chat" else (chat.hub,)
    return next((other for other in others if other in offered), None)


def translation(client: str, spoken: str) -> Translation:
    """How a request on one surface is served by an engine on the other. Raises KeyError where it can't be."""
    direct = _DIRECT.get((client, spoken))
    if direct is not None:
        return direct
    return Chained(_DIRECT[client, "chat"], _DIRECT["chat", spoken])


def to_hub(client: str, hub: str) -> Callable[[bytes], Translated] | None:
    """What makes a body of the hub's of a request on that surface; None where there is no such translation."""
    direct = _DIRECT.get((client, hub))
    return None if direct is None else direct.request

"""The surfaces: what clients can ask for, by the names used everywhere (routes, requests, engines, metrics).

A generating surface decodes tokens and may stream; a plain one is a JSON body and a JSON answer; a form is multipart.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

__all__ = ["SURFACES", "Kind", "Surface", "surface"]


class Kind(Enum):
    """How a surface is read and answered."""

    GENERATION = auto()
    PLAIN = auto()
    FORM = auto()


@dataclass(frozen=True, slots=True)
class Surface:
    """One surface. `path` is where engines that speak it usually have it, without the base; `noun` is for people.

    `dialect` names how its errors are written: openai, responses, anthropic, ollama_chat or ollama_generate. `prompt`
    is the member that holds what is asked.
    """

    name: str
    path: str
    kind: Kind
    noun: str
    dialect: str = "openai"
    prompt: str = "messages"


_ALL = (
    Surface("chat", "/v1/chat/completions", Kind.GENERATION, "chat completions"),
    Surface("completions", "/v1/completions", Kind.GENERATION, "text completions", prompt="prompt"),
    Surface("responses", "/v1/responses", Kind.GENERATION, "OpenAI responses", "responses", prompt="input"),
    Surface("messages", "/v1/messages", Kind.GENERATION, "Anthropic messages", "anthropic"),
    Surface("ollama_chat", "/api/chat", Kind.GENERATION, "Ollama chat", "ollama_chat"),
    Surface("ollama_generate", "/api/generate", Kind.GENERATION, "Ollama generate", "ollama_generate", prompt="prompt"),
    Surface("count_tokens", "/v1/messages/count_tokens", Kind.PLAIN, "Anthropic token counts", "anthropic"),
    Surface("embeddings", "/v1/embeddings", Kind.PLAIN, "embeddings", prompt="input"),
    Surface("ollama_embed", "/api/embed", Kind.PLAIN, "Ollama embeddings", "ollama_generate", prompt="input"),
    Surface("rerank", "/v1/rerank", Kind.PLAIN, "reranking", prompt="documents"),
    Surface("score", "/v1/score", Kind.PLAIN, "scores", prompt="text_2"),
    Surface("tokenize", "/tokenize", Kind.PLAIN, "tokenization", prompt="prompt"),
    Surface("detokenize", "/detokenize", Kind.PLAIN, "detokenization", prompt="tokens"),
    Surface("images", "/v1/images/generations", Kind.PLAIN, "image generation", prompt="prompt"),
    Surface("speech", "/v1/audio/speech", Kind.PLAIN, "speech", prompt="input"),
    Surface("transcriptions", "/v1/audio/transcriptions", Kind.FORM, "audio transcriptions", prompt="file"),
    Surface("translations", "/v1/audio/translations", Kind.FORM, "audio translations", prompt="file"),
    Surface("image_edits", "/v1/images/edits", Kind.FORM, "image edits", prompt="prompt"),
)

SURFACES: dict[str, Surface] = {each.name: each for each in _ALL}
"""Every surface by name, in the order in which they are listed to people."""


def surface(name: str) -> Surface:
    """The surface of that name. Raises KeyError for one that there is not."""
    return SURFACES[name]

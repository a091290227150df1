"""How the answers of each generating surface are read when an engine speaks it: streams, whole answers, edits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from gateway.wire.answer import WholeAnswer, read_answer
from gateway.wire.anthropic import whole as messages_whole
from gateway.wire.anthropic.assemble import MessageAssembler
from gateway.wire.anthropic.edits import edits as messages_edits
from gateway.wire.anthropic.stream import MessagesStream
from gateway.wire.assemble import Assembler
from gateway.wire.chat_request import ChatRequest
from gateway.wire.chat_stream import ChatStream
from gateway.wire.ollama import whole as ollama_whole
from gateway.wire.ollama.assemble import OllamaAssembler
from gateway.wire.ollama.edits import edits as ollama_edits
from gateway.wire.ollama.lines import LineFramer
from gateway.wire.ollama.lines import data_of as line_of
from gateway.wire.ollama.stream import OllamaStream
from gateway.wire.responses import whole as responses_whole
from gateway.wire.responses.assemble import ResponseAssembler
from gateway.wire.responses.edits import edits as responses_edits
from gateway.wire.responses.stream import ResponsesStream
from gateway.wire.sse import Framer, data_of
from gateway.wire.stream_view import StreamView
from gateway.wire.translated_stream import Framing

__all__ = ["FORMATS", "EventAssembler", "Format"]


class EventAssembler(Protocol):
    """Makes one JSON answer out of the events of a stream; `gateway.wire.assemble.Assembler` is one."""

    def feed(self, event: bytes) -> None:
        """Take in one whole event."""

    def result(self) -> bytes:
        """The answer's body. Raises StreamBroken when it is not whole."""


@dataclass(frozen=True, slots=True)
class Format:
    """One surface as engines answer on it.

    view: watches a stream of it for this request; the name is the client's for the model, None to leave the engine's,
    and the flag says that the client is to see usage that it did not ask for (a translation needs it). read: a whole
    answer with the model's name as the client knows it, None when it is no answer. edits: what changes of a body of it
    that passes through (served_as, stream, max_tokens); None where the engine's adapter knows.
    """

    view: Callable[[ChatRequest, str | None, bool], StreamView]
    assembler: Callable[[ChatRequest], EventAssembler]
    read: Callable[[bytes, str | None], WholeAnswer | None]
    edits: Callable[[bytes, str | None, bool | None, int | None], Mapping[str, bytes | None]] | None = None
    framing: Callable[[], Framing] = Framer
    data: Callable[[bytes], bytes | None] = data_of


def _chat_view(surface: str) -> Callable[[ChatRequest, str | None, bool], StreamView]:
    def view(chat: ChatRequest, alias: str | None, usage: bool) -> StreamView:
        return ChatStream(
            surface,
            model_alias=alias,
            show_usage=usage or bool(chat.include_usage),
            choices=chat.n * chat.prompts,
            prompts=chat.prompts,
        )

    return view


_OLLAMA = Format(
    lambda _chat, alias, _usage: OllamaStream(alias),
    lambda _chat: OllamaAssembler(),
    ollama_whole.read_answer,
    ollama_edits,
    LineFramer,
    line_of,
)

FORMATS: Mapping[str, Format] = {
    "chat": Format(_chat_view("chat"), lambda chat: Assembler("chat", prompts=chat.prompts), read_answer),
    "completions": Format(
        _chat_view("completions"), lambda chat: Assembler("completions", prompts=chat.prompts), read_answer
    ),
    "responses": Format(
        lambda _chat, alias, _usage: ResponsesStream(alias),
        lambda _chat: ResponseAssembler(),
        responses_whole.read_answer,
        lambda _body, served_as, stream, max_tokens: responses_edits(served_as, stream, max_tokens),
    ),
    "messages": Format(
        lambda _chat, alias, _usage: MessagesStream(alias),
        lambda _chat: MessageAssembler(),
        messages_whole.read_answer,
        lambda _body, served_as, stream, max_tokens: messages_edits(served_as, stream, max_tokens),
    ),
    "ollama_chat": _OLLAMA,
    "ollama_generate": _OLLAMA,
}
"""By surface."""

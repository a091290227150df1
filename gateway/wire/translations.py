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
from gateway.wire.responses import answer_from_chat as responses_answer
from gateway.wire.responses import request_to_chat as responses_chat_request
from gateway.wire.responses.stream_from_chat import ResponseWriter
from gateway.wire.surfaces import SURFACES
from gateway.wire.translation import Stamp, StreamWriter, Translated, Translation

__all__ = ["SPOKEN", "acceptable", "spoken_for", "to_chat", "translation"]


@dataclass(frozen=True, slots=True)
class _Pair:
    """A translation of three functions that know nothing of each other."""

    request: Callable[[bytes], Translated]
    answer: Callable[[bytes, object, Stamp], bytes]
    writer: Callable[[object, Stamp], StreamWriter]


_DIRECT: dict[tuple[str, str], Translation] = {
    ("messages", "chat"): _Pair(messages_chat_request.to_chat, messages_answer.answer, MessageWriter),
    ("responses", "chat"): _Pair(responses_chat_request.to_chat, responses_answer.answer, ResponseWriter),
    ("chat", "messages"): _Pair(messages_request.from_chat, messages_chat_answer.answer, MessagesChatWriter),
}
"""By client's surface and the engine's."""


def _spoken(client: str) -> tuple[str, ...]:
    direct = [engine for own, engine in _DIRECT if own == client]
    further = [engine for own, engine in _DIRECT if own == "chat" and engine != client] if "chat" in direct else []
    return tuple(dict.fromkeys((*direct, *further)))


SPOKEN: Mapping[str, tuple[str, ...]] = {client: _spoken(client) for client, _ in _DIRECT}
"""By client's surface: the other surfaces that it may be served by, the best first."""


_ACCEPTABLE = {name: frozenset((name, *SPOKEN.get(name, ()))) for name in SURFACES}


def acceptable(client: str, *, native_only: bool = False) -> frozenset[str]:
    """The surfaces in which an engine may be asked so that this client can be answered."""
    return frozenset((client,)) if native_only else _ACCEPTABLE[client]


def spoken_for(client: str, offered: frozenset[str] | None, *, native_only: bool = False) -> str | None:
    """The surface to ask an engine in: the client's own if it is offered (or nothing is known), else the best other.

    None when there is none; `native_only` for a request that no translation has a place for.
    """
    if offered is None or client in offered:
        return client
    if native_only:
        return None
    return next((other for other in SPOKEN.get(client, ()) if other in offered), None)


def translation(client: str, spoken: str) -> Translation:
    """How a request on one surface is served by an engine on the other. Raises KeyError where it can't be."""
    direct = _DIRECT.get((client, spoken))
    if direct is not None:
        return direct
    return Chained(_DIRECT[client, "chat"], _DIRECT["chat", spoken])


def to_chat(client: str) -> Callable[[bytes], Translated] | None:
    """What makes a chat body of a request on that surface; None for one that is none of chat's kind."""
    direct = _DIRECT.get((client, "chat"))
    return None if direct is None else direct.request

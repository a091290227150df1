"""A collected answer as the client gets it: put together, read, renamed, translated. Bytes in, values out."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.errors import StreamBroken
from gateway.wire.chat_request import ChatRequest
from gateway.wire.formats import FORMATS
from gateway.wire.gave_up import gave_up
from gateway.wire.responses.whole import answer_id
from gateway.wire.translation import Stamp
from gateway.wire.translations import translation
from gateway.wire.usage import Usage

__all__ = ["Finished", "Finishing", "finished"]

_READ = 256 * 1024
"""Bytes of a stream that are taken apart at a time."""


@dataclass(frozen=True, slots=True)
class Finishing:
    """What is to be done with an answer to `chat` that came on the surface `spoken`.

    `alias`: the model's name as the client knows it, None to leave it. `context` and `stamp` are a translation's.
    `events`: it is a stream that is yet to be put together.
    """

    chat: ChatRequest
    spoken: str
    alias: str | None
    context: object
    stamp: Stamp
    events: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """What the answer told. `kept`: its own id, where it may be kept under it. `sound` False: it is no answer."""

    usage: Usage | None = None
    finish_reason: str | None = None
    kept: str | None = None
    sound: bool = True


def finished(told: Finishing, body: bytes) -> tuple[Finished, bytes]:
    """The findings, and the client's body. Raises StreamBroken for what can't be put together or translated."""
    chat, form = told.chat, FORMATS.get(told.spoken)
    if told.events and form is not None:
        body = _assembled(told, body)
    found = Finished()
    if form is not None:
        answer = form.read(body, told.alias)
        if answer is None:
            return Finished(sound=False), b""
        body = answer.body
        kept = answer_id(body) if told.spoken == chat.surface == "responses" else None
        found = Finished(answer.usage, answer.finish_reason, kept)
    if told.spoken != chat.surface:
        if gave_up(found.finish_reason):
            raise StreamBroken("the engine gave the answer up")
        body = translation(chat.surface, told.spoken).answer(body, told.context, told.stamp)
    return found, body


def _assembled(told: Finishing, body: bytes) -> bytes:
    form = FORMATS[told.spoken]
    framer, assembler = form.framing(), form.assembler(told.chat)
    for at in range(0, len(body), _READ):
        for event in framer.feed(body[at : at + _READ]):
            assembler.feed(event)
    for event in framer.end():
        assembler.feed(event)
    return assembler.result()

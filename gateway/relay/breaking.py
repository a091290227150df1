"""An answer that may break off: what is kept of it while it streams, and how the next engine is asked for its rest."""

from __future__ import annotations

import asyncio

from gateway.core.lease import Lease
from gateway.engines.adapter import Rendering
from gateway.errors import MalformedRequest
from gateway.relay.errand import INLINE_BYTES, RESUMABLE, GoesOn, Outbound, Upstream
from gateway.relay.questions import Questions
from gateway.wire.chat_request import ChatRequest
from gateway.wire.so_far import Given, SoFar
from gateway.wire.stream_view import StreamView

__all__ = ["Breaking"]

_PATIENCE = 5.0
"""Seconds for an engine to render a prompt and cut it into tokens; else it is given text."""


class Breaking:
    """One a request whose answer can go on elsewhere. so_far: None until an engine was asked in a way that allows it.

    goes_on: how the attempt that comes next goes on; None: it begins.
    """

    __slots__ = ("_given", "goes_on", "so_far")

    def __init__(self) -> None:
        self.so_far: SoFar | None = None
        self.goes_on: GoesOn | None = None
        self._given: Given | None = None

    def begun(self, out: Outbound, view: StreamView, shown: StreamView) -> SoFar | None:
        """What the attempt that begins is to keep its events in; the views of the first one live on in it."""
        if self.goes_on is None or self.so_far is None:
            self.so_far = SoFar(out.spoken, view, shown, ids=out.ids) if out.spoken in RESUMABLE else None
        else:
            self.so_far.goes_on(given=self.goes_on.given, tail=self.goes_on.tail, ids=out.ids)
        return self.so_far

    def broke_off(self) -> int | None:
        """Tokens of the answer from which another engine can go on; None: it can't, by what was shown so far."""
        self._given = self.so_far.given() if self.so_far is not None else None
        return None if self._given is None else self._given.count

    async def on(
        self, lease: Lease, upstream: Upstream, chat: ChatRequest, body: bytes, ask: Questions
    ) -> GoesOn | None:
        """How this engine is asked for the rest: by token where it can be, else as a message left open; None: for all.

        By token only what the engine writes as it is: calls of tools are parsed where they come in a chat.
        """
        given, so_far = self._given, self.so_far
        if given is None or so_far is None:
            return None
        prompt = None
        if not chat.tools and chat.surface == so_far.surface:
            way = upstream.engine.traits.resumes
            if way == "ids":
                prompt = given.ids
            elif way == "pieces":
                tokens = await _rendered(lease, upstream, chat, body, ask)
                prompt = None if tokens is None else tokens[:-1] + b"," + given.pieces[1:]
        if prompt is None:
            self.goes_on = GoesOn(so_far.surface, given.count - given.blank, given.text, given.tail)
        else:
            self.goes_on = GoesOn(so_far.surface, given.count, prompt=prompt)
        return self.goes_on


async def _rendered(lease: Lease, upstream: Upstream, chat: ChatRequest, body: bytes, ask: Questions) -> bytes | None:
    """The tokens of the prompt, as the engine itself makes them."""
    render = upstream.engine.rendering
    try:
        asking: Rendering | None
        if len(body) <= INLINE_BYTES:
            asking = render(chat.surface, body)
        else:
            asking = await asyncio.to_thread(render, chat.surface, body)
    except MalformedRequest:
        return None
    if asking is None:
        return None
    question = next(asking)
    while True:
        answer = await ask.ask(lease.backend, question, _PATIENCE)
        if answer is None:
            return None
        try:
            question = asking.send(answer)
        except StopIteration as told:
            tokens: bytes | None = told.value
            return tokens

"""Counts of prompt tokens by the engines themselves: which may be asked, in what, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from gateway import clock
from gateway.core.backend import Offer
from gateway.core.boundary import within
from gateway.core.request import Request
from gateway.core.snapshot import BackendView, Health, Snapshot
from gateway.engines.adapter import Answer, Counting, Engine, Probe
from gateway.errors import MalformedRequest
from gateway.wire.chat_request import ChatRequest
from gateway.wire.translations import spoken_for, to_hub, translation

__all__ = ["Asking", "EngineCounts"]

INLINE_BYTES = 48 * 1024
"""Bodies up to this size are made ready on the loop; longer ones in a thread."""
MOST_ASKED = 2
"""Backends that are asked, one after the other, for one count."""
EACH = 2.0
"""Seconds that one of them has."""
LATE_IN_A_ROW = 3
REST = 10.0
"""Seconds for which a backend is left alone that was late so often in a row."""
UNABLE = 300.0
"""Seconds for which a backend is not asked again in a way in which it did not answer with a number."""
_WORKING = frozenset((Health.UP, Health.TRIAL))


class Asking(Protocol):
    """The way to the engines, by backend name."""

    def engine(self, backend: str) -> Engine | None:
        """The adapter of that backend; None when it is gone."""

    async def ask(self, backend: str, question: Probe, within: float) -> Answer | None:
        """What it answered within so many seconds; None when it did not."""


class EngineCounts:
    """Has prompts counted by engines that serve the model, are cleared for the request and work.

    `may_see` is asked before each question whether that backend may see the request by now.
    """

    def __init__(
        self, asking: Asking, may_see: Callable[[Request, str], bool], now: Callable[[], float] = clock.monotonic
    ) -> None:
        self._asking = asking
        self._may_see = may_see
        self._now = now
        self._late: dict[str, int] = {}
        self._rests: dict[tuple[str, str], float] = {}
        """By backend and surface (all of them: an empty one), until when."""

    def able(self, request: Request, model: str, chat: ChatRequest, snapshot: Snapshot) -> list[tuple[str, Offer]]:
        """The backends that may be asked, with what they offer: those in the house first, then those of larger windows.

        The data boundary holds here as for the request itself: to count a prompt is to see it.
        """
        found = [
            (view, offer)
            for view in snapshot.views
            if (offer := view.offer(model)) is not None and self._may(view, request, chat)
        ]
        found.sort(key=lambda each: (each[0].backend.off_premises, -each[1].window))
        return [(view.name, offer) for view, offer in found[:MOST_ASKED]]

    def _may(self, view: BackendView, request: Request, chat: ChatRequest) -> bool:
        engine = self._asking.engine(view.name)
        if engine is None or view.health not in _WORKING or not within(request.label, view.backend.clearance):
            return False
        if chat.media and not engine.traits.counts_media:
            return False
        now = self._now()
        return all(self._rests.get((view.name, how), now) <= now for how in ("", chat.surface))

    async def count(
        self,
        request: Request,
        backends: list[tuple[str, Offer]],
        chat: ChatRequest,
        body: bytes,
        shown: Callable[[str], None] = lambda _backend: None,
    ) -> int | None:
        """Ask one after another; None when none of them tells a number. `shown` is told who is shown the prompt."""
        for name, offer in backends:
            engine = self._asking.engine(name)
            if engine is None:
                continue
            try:
                if len(body) <= INLINE_BYTES:
                    counting = _counting(engine, chat, body, offer)
                else:
                    counting = await asyncio.to_thread(_counting, engine, chat, body, offer)
            except MalformedRequest:
                return None
            if counting is not None and self._may_see(request, name):
                shown(name)
            tokens = await self._told(request, name, chat.surface, counting)
            if tokens is not None:
                return tokens
        return None

    async def _told(self, request: Request, name: str, surface: str, counting: Counting | None) -> int | None:
        if counting is None:
            self._rests[name, surface] = self._now() + UNABLE
            return None
        question = next(counting)
        while self._may_see(request, name):
            answer = await self._asking.ask(name, question, EACH)
            if answer is None:
                late = self._late[name] = self._late.get(name, 0) + 1
                if late >= LATE_IN_A_ROW:
                    self._late[name] = 0
                    self._rests[name, ""] = self._now() + REST
                return None
            self._late.pop(name, None)
            try:
                question = counting.send(answer)
            except StopIteration as told:
                tokens: int | None = told.value
                if tokens is None and answer.status in (404, 405, 501):
                    self._rests[name, surface] = self._now() + UNABLE
                return tokens
        return None


def _counting(engine: Engine, chat: ChatRequest, body: bytes, offer: Offer) -> Counting | None:
    """How that engine counts this body: in the surface that it would be asked in, else as chat."""
    surface = "messages" if chat.surface == "count_tokens" else chat.surface
    spoken = spoken_for(replace(chat, surface=surface), offer.surfaces)
    if spoken is None:
        return None
    sent = body if spoken == surface else translation(surface, spoken).request(body).body
    found = engine.counting(spoken, sent, offer.served_as)
    if found is not None or spoken == "chat":
        return found
    to_chat = to_hub(surface, "chat")
    return engine.counting("chat", to_chat(body).body, offer.served_as) if to_chat is not None else None
